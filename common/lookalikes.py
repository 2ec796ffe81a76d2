"""Characters that make a text look like another one: hidden ones, letters of other scripts, punycode.

Scripts are told by the letters' Unicode names. What is spelled out are the control and format characters
(categories Cc and Cf), the separators Zl and Zp, and the few letters and marks that leave no trace on a page.
"""

import re
import unicodedata
from collections.abc import Iterable

import idna
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from common.normal_forms import normalized

SHOWN = 3  # examples of each kind

BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Cc without tab and line feed, Cf, Zl, Zp, fillers, blanks and variation selectors.
HIDDEN = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)
# A carriage return before a line feed ends a line; a joiner or selector behind a symbol belongs to it.
SPELLED = re.compile(rf"\r(?!\n)|[{HIDDEN}]")
TURNS = re.compile(rf"[{BIDI}]")
OF_SYMBOLS = "\u200d\ufe0e\ufe0f"
KEYCAP = "\u20e3"
WORD = re.compile(r"[^\W\d_]+")
HOST = re.compile(r"(?:@|://)([^\s/?#<>\"'\[\](),;:@|]{1,253})")
PUNYCODE = re.compile(r"\bxn--[a-z0-9-]{1,59}", re.IGNORECASE)

SCRIPTS = {
    "LATIN": gettext_lazy("Latin"),
    "CYRILLIC": gettext_lazy("Cyrillic"),
    "GREEK": gettext_lazy("Greek"),
    "ARMENIAN": gettext_lazy("Armenian"),
    "CHEROKEE": gettext_lazy("Cherokee"),
    "COPTIC": gettext_lazy("Coptic"),
}
# Letters that look like a Latin one in common typefaces.
LOOKS = dict(
    zip(
        "аесорхуіјѕһԁԛԝӏгАВЕКМНОРСТХУІЈЅԚԜӀαορνιυκτωχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոհցԼՏɑɡı",
        "aecopxyijshdqwlrABEKMHOPCTXYIJSQWlaopviuktwxABEZHIKMNOPTYXounhgLSagi",
        strict=True,
    )
)
LATIN = str.maketrans(LOOKS)
PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("0", "o"), ("1", "l"), ("i", "l"), ("5", "s"))


def as_seen(text: str) -> str:
    """The text in the Latin letters that people take it for: full-width, and alike in other scripts."""
    return normalized("NFKC", text).translate(LATIN)


def visible(text: str) -> str:
    """The text with characters that hide or reorder others spelled out: ⟨U+200B⟩."""
    if text.isascii() and text.isprintable():
        return text
    return SPELLED.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    return found[0] if _of_symbol(found) else f"⟨U+{ord(found[0]):04X}⟩"


def _of_symbol(found: re.Match[str]) -> bool:
    """Whether it only chooses or joins the pictures beside it."""
    if found[0] not in OF_SYMBOLS:
        return False
    before = found.string[found.start() - 1 : found.start()]
    if found.string[found.end() : found.end() + 1] == KEYCAP:
        return True
    return before in OF_SYMBOLS or (bool(before) and unicodedata.category(before) in ("So", "Sk", "Sm"))


def findings(text: str) -> list[str]:
    """What is odd about the characters of a text, in words; nothing for an ordinary one."""
    found = [] if text.isascii() and not SPELLED.search(text) else [*_hidden(text), *_mixed(text)]
    return [*found, *_hosts(text)]


def _hidden(text: str) -> Iterable[str]:
    hidden = [one[0] for one in SPELLED.finditer(text) if not _of_symbol(one)]
    turning = [one for one in hidden if TURNS.match(one)]
    others = [one for one in hidden if not TURNS.match(one)]
    if others:
        said = ngettext(
            "{count} invisible character: {names}", "{count} invisible characters: {names}", len(others)
        )
        yield said.format(count=len(others), names=_names(others))
    if turning:
        said = _("It turns the direction of reading ({names}): what you read may stand in another order.")
        yield said.format(names=_names(turning))


def _names(characters: list[str]) -> str:
    kinds = list(dict.fromkeys(characters))
    told = [
        f"{unicodedata.name(one, _('control character')).lower()} U+{ord(one):04X}" for one in kinds[:SHOWN]
    ]
    return ", ".join([*told, *(["…"] if len(kinds) > SHOWN else [])])


def _mixed(text: str) -> Iterable[str]:
    """Words of letters of several scripts that look alike. Greek among Latin ones is common in formulas, and
    only told where a letter passes for a Latin one.
    """
    told: dict[str, str] = {}
    for one in WORD.finditer(text):
        if one[0].isascii() or one[0] in told:
            continue
        if why := _why_mixed(one[0]):
            told[one[0]] = why
            if len(told) == SHOWN:
                break
    yield from told.values()


def _why_mixed(word: str) -> str:
    scripts = {letter: script(letter) for letter in word}
    kinds = [kind for kind in SCRIPTS if kind in scripts.values()]
    foreign = [letter for letter in word if letter in LOOKS]
    if len(kinds) < 2 or not (foreign or "CYRILLIC" in kinds):
        return ""
    odd = next((letter for letter in (*foreign, *word) if scripts[letter] not in ("LATIN", "")), "")
    said = _("“{word}” mixes {one} and {other} letters: “{letter}” is {name} (U+{code}).")
    names = [str(SCRIPTS[kind]) for kind in kinds[:2]]
    code, name = f"{ord(odd):04X}", str(SCRIPTS[scripts[odd]])
    return said.format(word=word[:60], one=names[0], other=names[1], letter=odd, name=name, code=code)


def script(letter: str) -> str:
    """The script of a letter, of those that are told apart; empty for the others."""
    first = unicodedata.name(letter, "").partition(" ")[0]
    return first if first in SCRIPTS else ""


def _hosts(text: str) -> Iterable[str]:
    """What is odd about the hosts of addresses, and about punycode wherever it stands."""
    for label in list(dict.fromkeys(one[0].lower() for one in PUNYCODE.finditer(text)))[:SHOWN]:
        said = _(
            "“{label}” is how “{word}” is written in addresses: its letters may not be the ones you expect."
        )
        yield said.format(label=label, word=visible(_decoded(label)))
    if text.isascii():
        return
    for host in list(dict.fromkeys(one[1] for one in HOST.finditer(text) if not one[1].isascii()))[:SHOWN]:
        plain = normalized("NFKC", host)
        if plain.lower() != host.lower():
            yield _("“{host}” is written with other forms of letters; it leads to {plain}.").format(
                host=host, plain=visible(plain)
            )
        looks = "".join(LOOKS.get(letter, letter) for letter in plain)
        if looks.isascii() and looks != plain:
            yield _("“{host}” looks like {looks} and is another address.").format(
                host=told_apart(host), looks=looks
            )


def told_apart(host: str) -> str:
    """The host, with its punycode where it has other letters than ASCII: the two cannot look alike."""
    if host.isascii():
        return visible(host)
    try:
        return f"{visible(host)} ({idna.encode(host, uts46=True).decode()})"
    except (idna.IDNAError, UnicodeError):
        return visible(host)


def _decoded(label: str) -> str:
    try:
        return idna.decode(label)
    except (idna.IDNAError, UnicodeError):
        return label


def skeleton(host: str) -> str:
    """What a reader sees at a glance: hosts with the same skeleton are easily taken for each other."""
    labels = (_decoded(label) if label.startswith("xn--") else label for label in host.lower().split("."))
    plain = normalized("NFKC", ".".join(labels))
    seen = "".join(LOOKS.get(letter, letter) for letter in plain).lower()
    for one, other in PAIRS:
        seen = seen.replace(one, other)
    return seen
