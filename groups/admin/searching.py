"""A search in the admin finds nothing by what its pages mask: else a key is told letter by letter."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.text import smart_split, unescape_string_literal

from common import redact

MOST = 500  # rows that may hold a key, of which it is found out what else of them matches; the newest ones


class SearchesWhatIsShown:
    """For a ModelAdmin: `masked_text` names the one of its `search_fields` whose keys are masked."""

    masked_text = ""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found, twice = super().get_search_results(request, queryset, search_term)  # type: ignore[misc]
        if not search_term.strip():
            return found, bool(twice)
        words = [_unquoted(word).casefold() for word in smart_split(search_term)]
        may_hold = Q(**{f"{self.masked_text}__regex": redact.MAY_HOLD_KEY})
        columns = [name.removesuffix("__exact") for name in self.search_fields]  # type: ignore[attr-defined]
        held = found.filter(may_hold).order_by("-pk").values_list("pk", *columns)[:MOST]
        shown = [pk for pk, *texts in held if _shown(words, texts)]
        return found.filter(~may_hold | Q(pk__in=shown)), bool(twice)


def _unquoted(word: str) -> str:
    quoted = word[0] in "\"'" and word[0] == word[-1]
    return str(unescape_string_literal(word)) if quoted else word


def _shown(words: Iterable[str], texts: Iterable[Any]) -> bool:
    """Whether each word stands in what is shown; the mask itself is no text of the row."""
    told = [redact.shown(str(text)).replace(redact.MASK, "\n").casefold() for text in texts]
    return all(any(word in text for text in told) for word in words)
