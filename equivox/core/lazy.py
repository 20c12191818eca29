"""numpy, which is imported when it is first used: a command that computes nothing starts without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NDArray", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    NDArray = Any

    class _Numpy:
        """Stands for numpy, and keeps each name that was used."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _Numpy()
