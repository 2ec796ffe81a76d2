"""The language of what people are sent: the one in which they last signed in, or chose."""

from typing import Any

from django.conf import settings
from django.utils.translation import check_for_language, get_language

from groups.models import Reader


def note(user: Any, language: str | None = None) -> None:
    """Remember in which language this person reads; without one, the language that is active."""
    language = language or get_language() or settings.LANGUAGE_CODE
    Reader.objects.update_or_create(user=user, defaults={"language": language})


def language_of(user_id: Any) -> str:
    """The person's language; the installation's where it is not known, or not spoken any more."""
    said = Reader.objects.filter(pk=user_id).values_list("language", flat=True).first()
    return said if said in dict(settings.LANGUAGES) and check_for_language(said) else settings.LANGUAGE_CODE
