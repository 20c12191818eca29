"""DeSTA2.5-Audio, loaded as the page of its code does. Not run with equivox: its weights need a GPU of 24 GB.

Install it from its repository: git clone https://github.com/kehanlu/DeSTA2.5-Audio, then pip install -e DeSTA2.5-Audio.
"""

from __future__ import annotations

from typing import Any

MODEL = "DeSTA-ntu/DeSTA2.5-Audio-Llama-3.1-8B"
SETTINGS = ("max_tokens", "temperature", "top_p", "seed")

model: Any = None


def load() -> None:
    """Load the model onto the GPU."""
    global model
    from desta import DeSTA25AudioModel

    model = DeSTA25AudioModel.from_pretrained(MODEL)
    model.to("cuda")


def answer(text: str, audio: Any | None, sampling: dict[str, Any]) -> str:
    """Return the model's answer to a text, about a clip if there is one."""
    return answer_all([text], [audio], sampling)[0]


def answer_all(texts: list[str], audios: list[Any | None], sampling: dict[str, Any]) -> list[str]:
    """Return the answers to several texts; all have a clip, or none has."""
    import torch

    torch.manual_seed(sampling.get("seed", 0))
    temperature = sampling.get("temperature", 0.0)
    # The page's example begins with a system message; equivox sends none, to any model.
    conversations: list[list[dict[str, Any]]] = [
        [
            {"role": "user", "content": text}
            if audio is None
            else {"role": "user", "content": f"<|AUDIO|>\n{text}", "audios": [{"audio": audio.path, "text": None}]}
        ]
        for text, audio in zip(texts, audios, strict=True)
    ]
    outputs = model.generate(
        messages=conversations,
        do_sample=temperature > 0,
        temperature=temperature or 1.0,
        top_p=sampling.get("top_p", 1.0),
        max_new_tokens=sampling.get("max_tokens", 512),
    )
    said = [outputs.text] if isinstance(outputs.text, str) else outputs.text
    return [str(one) for one in said]
