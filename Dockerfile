# equivox with vLLM, for a machine with an NVIDIA GPU; docs/scale.md has the commands.
# CUDA comes with the wheels, the driver from the host. constraints-vllm.txt pins every Python package for Linux on x86-64:
# vLLM 0.32.0, torch 2.13.0, Ray 2.60.0.
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS wheel
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM ${PYTHON}
# Triton and FlashInfer compile kernels when a model is loaded.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ libc6-dev \
    && rm -rf /var/lib/apt/lists/*
# EXTRAS=endpoint makes a small image without vLLM, for models behind a server.
ARG EXTRAS=vllm,endpoint,ray
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    --mount=type=bind,source=constraints-vllm.txt,target=/constraints.txt \
    pip install --no-cache-dir -c /constraints.txt "$(ls /wheel/equivox-*.whl)[${EXTRAS}]"

# UID is the user who owns runs/ on the host.
ARG UID=1000
RUN useradd --create-home --uid ${UID} equivox \
    && mkdir -p /cache /work/runs /work/data \
    && chown -R equivox /cache /work
ENV HF_HOME=/cache/huggingface \
    XDG_CACHE_HOME=/cache \
    HF_HUB_DISABLE_TELEMETRY=1 \
    RAY_USAGE_STATS_ENABLED=0 \
    VLLM_NO_USAGE_STATS=1
USER equivox
WORKDIR /work
VOLUME ["/cache"]
ENTRYPOINT ["equivox"]
CMD ["--help"]
