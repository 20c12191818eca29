"""Clusters of phrases with similar meaning: embeddings and greedy leader clustering.

The first phrase is a leader; each later one joins the earliest leader whose cosine with it reaches the threshold, or
becomes a leader if there is none. A phrase is compared only with leaders, never with other members.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from equivox.core.errors import RequestError
from equivox.core.lazy import NDArray, np

if TYPE_CHECKING:
    import numpy.typing as npt
    from sentence_transformers import SentenceTransformer

_BLOCK = 2048
_SURE = 1e-5
"""Cosines this close to the threshold are computed again in double precision (single is good to about 1e-6)."""


def unify(phrases: Sequence[str], encoder: str, threshold: float) -> list[str]:
    """Return, for each phrase, the leader of its cluster; a leader is its own.

    `phrases` are distinct and in the order in which they can become leaders; `encoder` is a sentence-transformers model
    by name or folder. Raises RequestError if the library or the model is missing.
    """
    vectors = load_encoder(encoder).encode(list(phrases), batch_size=64, show_progress_bar=False)
    return [phrases[leader] for leader in leader_clusters(vectors, threshold)]


@cache
def load_encoder(encoder: str) -> SentenceTransformer:
    """Return the sentence-transformers model `encoder`, on the CPU, so that vectors are equal on every machine."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise RequestError(
            "merging by meaning needs the package sentence-transformers, which is not installed; "
            "install it with: pip install 'equivox[embeddings]'"
        ) from None
    try:
        return SentenceTransformer(encoder, device="cpu")
    except (OSError, ValueError) as error:
        raise RequestError(
            f"`encoder` {encoder!r} cannot be loaded ({str(error).splitlines()[0]}); "
            "give a sentence-transformers model by name, or the folder of one"
        ) from error


def leader_clusters(vectors: npt.ArrayLike, threshold: float, *, block: int = _BLOCK) -> NDArray[np.int64]:
    """Return the index of the leader of each vector, shape (n,); a leader has its own index.

    `vectors` has shape (n, dimensions), in the order in which they can become leaders; they are scaled to unit length
    here. Memory grows with n × dimensions and the block, never with n². Raises ValueError for a threshold outside
    (0, 1], for a vector without length, and for one with a NaN.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"`threshold` is a cosine in (0, 1], got {threshold}")
    units = np.array(vectors, dtype=np.float32, ndmin=2)
    lengths = np.linalg.norm(units, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)) or np.any(lengths == 0):
        raise ValueError("every vector needs a finite length above 0")
    units /= lengths
    n = len(units)
    leader_of = np.full(n, -1, dtype=np.int64)
    leaders = np.empty_like(units)
    index_of_leader = np.empty(n, dtype=np.int64)
    n_leaders = 0
    for start in range(0, n, block):
        members = units[start : start + block]
        own = leader_of[start : start + block]
        for first in range(0, n_leaders, block):
            open_ = np.flatnonzero(own < 0)
            if not len(open_):
                break
            last = min(first + block, n_leaders)
            near = _near(members[open_], leaders[first:last], threshold)
            found = near.any(axis=1)
            own[open_[found]] = index_of_leader[first + near[found].argmax(axis=1)]
        open_ = np.flatnonzero(own < 0)
        near = _near(members[open_], members[open_], threshold)
        for place, member in enumerate(open_):
            if own[member] >= 0:
                continue
            own[member] = start + member
            leaders[n_leaders], index_of_leader[n_leaders] = members[member], start + member
            n_leaders += 1
            joining = open_[place + 1 :][near[place, place + 1 :]]
            own[joining[own[joining] < 0]] = start + member
    return leader_of


def _near(left: NDArray[np.float32], right: NDArray[np.float32], threshold: float) -> NDArray[np.bool_]:
    """Return which pairs reach the threshold, shape (left, right)."""
    cosines = left @ right.T
    near: NDArray[np.bool_] = cosines >= threshold
    doubtful = np.abs(cosines - threshold) < _SURE
    if doubtful.any():
        rows, columns = np.nonzero(doubtful)
        a, b = left[rows].astype(np.float64), right[columns].astype(np.float64)
        exact = (a * b).sum(axis=1) / np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
        near[rows, columns] = exact >= threshold
    return near
