"""A model that cannot be asked is said at start."""

import pytest

from common.env import BadSetting
from runs.apps import check_model


def test_an_unknown_model_names_the_variable_and_what_is_known(settings):
    settings.DEPUTY_MODEL = "opnai:gpt-5"
    with pytest.raises(BadSetting, match=r"DEPUTY_MODEL=opnai:gpt-5 cannot be used: .*openai:NAME"):
        check_model()


def test_a_missing_key_names_the_providers_variable(settings, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    settings.DEPUTY_MODEL = "openai:gpt-5"
    with pytest.raises(BadSetting, match="OPENAI_API_KEY"):
        check_model()


def test_the_embedded_model_needs_nothing(settings):
    settings.DEPUTY_MODEL = "local"
    check_model()
