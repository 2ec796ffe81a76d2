"""Which texts name an address: what leads somewhere in one, and whether others hold that, however it is
spelled there.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from html import unescape
from urllib.parse import unquote

import idna

from common.lookalikes import as_seen
from common.normal_forms import normalized
from policy.provenance import forms, given, words

MOST_COMPARED = 5_000_000  # characters of texts times addresses: some seconds
PHONE_DIGITS = 8  # at its end, which it has with and without a country's code
SHORTEST = 5  # letters and digits of an address that is looked for in pieces
# What a page shows nothing of: marks of Markdown and blanks within an address, tags, and where a link leads.
BETWEEN = r"[\W_]{0,8}"
HIDDEN = re.compile(r"<[^<>]{0,200}>|\]\([^()\s]{0,200}\)")
ALIKE = str.maketrans("01i5", "olls")  # `EVIL` and `EVlL`
LIKE_DIGITS = "ols"
SIGNS = {"@": "(?:at)?", ".": "(?:dot|punkt|点)?"}
BEGINS, ENDS = r"(?<![^\W_])(?<![^\W_][.+%@-])", r"(?![^\W_]|[.-][^\W_])"


def places(texts: Iterable[str]) -> set[str]:
    """All that leads somewhere in them: it is the agent's also where an answer is but that part of a choice
    (`Ann <ann@example.org>`), or has more beside it than the one word that an account or a wallet is.
    """
    return {form for text in texts for form, *_ in forms.leads(forms.clean(text))}


def own_places(texts: Iterable[str]) -> set[str]:
    """Of texts of the person's: without what they forbid, and what they quote or paste, which others said."""
    return places(given.before_pasted(words.own(text)) for text in texts)


def held(sought: Collection[str], texts: Collection[str]) -> set[str]:
    """Those of the addresses that the texts hold. More than a request can compare may all be there."""
    if not sought or not texts:
        return set()
    if len(sought) * sum(map(len, texts)) > MOST_COMPARED:
        return set(sought)
    found = set(sought) & places(texts)
    shown = {each for text in texts for each in (text, HIDDEN.sub("", text), unquote(unescape(text)))}
    plain = [_as_read(forms.clean(text)) for text in shown]
    for form in set(sought) - found:
        spelled = _spelled(form)
        if spelled and any(spelled.search(text) for text in plain):
            found.add(form)
    return found


def _spelled(form: str) -> re.Pattern[str] | None:
    """The address with anything but letters and digits within it, and words for its signs."""
    kind, _, plain = form.casefold().partition(":")
    with suppress(UnicodeError):  # its host may be written in the letters of any script
        plain = "@".join(idna.decode(part) if "xn--" in part else part for part in plain.split("@"))
    letters = [letter for letter in plain if letter.isalnum()]
    if len(letters) < SHORTEST:
        return None
    if all(map(str.isdigit, letters)):
        digits = "".join(letters).lstrip("0")
        digits = _as_read(digits[-PHONE_DIGITS:] if kind == "phone" else digits)
        return re.compile(BETWEEN.join(digits) + rf"(?![\d{LIKE_DIGITS}])")
    parts = [re.escape(sign) if sign.isalnum() else SIGNS.get(sign, "") for sign in _as_read(plain)]
    return re.compile(BEGINS + BETWEEN.join(part for part in parts if part) + ENDS)


def _as_read(text: str) -> str:
    """As somebody reads it who then types the letters that they take its own for: without regard to case, to
    their script, to marks (a dot below one is easily overlooked) and to letters that look like figures.
    """
    return normalized("NFKD", as_seen(text)).casefold().translate(ALIKE)
