"""The model that runs in the process and needs no server."""

import pytest
from django.core.checks import run_checks

from memory.embeddings import embedded
from memory.embeddings.client import embed
from memory.embeddings.models import BadModel, configured

MODEL = "embedded:multilingual"


def test_its_name_is_checked_and_so_is_its_package(settings, monkeypatch):
    settings.EMBEDDING_MODEL = "embedded:klingon"
    with pytest.raises(BadModel, match="multilingual"):
        configured()
    settings.EMBEDDING_MODEL = MODEL
    monkeypatch.setattr(embedded, "PACKAGE", "not_installed_anywhere")
    assert ["requirements-embeddings.txt" in str(error.msg) for error in run_checks()] == [True]


def test_texts_of_one_meaning_are_near_each_other_in_two_languages(settings):
    pytest.importorskip(embedded.PACKAGE)
    settings.EMBEDDING_MODEL = MODEL
    model = configured()
    hotel, weather, 酒店 = embed(model, ["Book a hotel room", "The weather is nice", "我想订一家酒店"], 1)

    def near(one: list[float], other: list[float]) -> float:
        return sum(x * y for x, y in zip(one, other, strict=True))

    assert len(hotel) == 512
    assert near(hotel, 酒店) > near(hotel, weather) + 0.3


@pytest.mark.parametrize("text", ["", " \n", "…!?", "\x00", "a" * 10_000, "\ud800", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢"])
def test_no_text_breaks_it(settings, text):
    pytest.importorskip(embedded.PACKAGE)
    settings.EMBEDDING_MODEL = MODEL
    (vector,) = embed(configured(), [text], 1)
    assert sum(x * x for x in vector) == pytest.approx(1, abs=0.01)
