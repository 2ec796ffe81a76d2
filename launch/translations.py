"""The words of the interface: where they stand in templates, code and models, and what of them is translated.

Nothing of GNU gettext is needed. Django reads the compiled catalogue that lies beside its source; this module
finds the words, keeps the source up to date and compiles it (`-m launch.messages`).
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.template import engines
from django.template.base import Lexer, TokenType
from django.templatetags.i18n import BlockTranslateNode, TranslateNode

from common import labels
from config.unfold import SIDEBAR
from runs.tools import registry

BASE = Path(settings.BASE_DIR)
OWN = ("common", "config", "groups", "memory", "policy", "runs")
LANGUAGE = "zh_Hans"
SOURCE = BASE / "locale" / LANGUAGE / "LC_MESSAGES" / "django.po"
COMPILED = SOURCE.with_suffix(".mo")

# functions that look words up, and where among their arguments these stand: (context, words, plural)
LOOKUPS: dict[str, tuple[int | None, int, int | None]] = {
    "_": (None, 0, None),
    "gettext": (None, 0, None),
    "gettext_lazy": (None, 0, None),
    "gettext_noop": (None, 0, None),
    "ngettext": (None, 0, 1),
    "pgettext": (0, 1, None),
    "pgettext_lazy": (0, 1, None),
    # what an action refuses is said in plain English; a page looks it up when it shows it
    "DecisionRefused": (None, 1, None),
    "NotAllowed": (None, 1, None),
    "CannotStart": (None, 1, None),
    "CannotSchedule": (None, 1, None),
    "CannotRate": (None, 1, None),
    "CannotMake": (None, 1, None),
    "SignalRefused": (None, 1, None),
    "ChannelRefused": (None, 0, None),
    "BadAddress": (None, 0, None),
}
# what the theme says and neither it nor Django has in Chinese
THEME = (
    "All applications",
    "Apply Filters",
    "Cancel",
    "Choose file to upload",
    "Click to cancel",
    "Click to download",
    "Dark",
    "Date",
    "Date from",
    "Date to",
    "Expand row",
    "False",
    "From",
    "General",
    "Go back",
    "Light",
    "Loading more results...",
    "More actions",
    "No data",
    "No results found",
    "No results matching your query",
    "Reset filters",
    "Return to site",
    "Select action",
    "Select action to run",
    "Select all rows",
    "Select record",
    "This item will be deleted.",
    "To",
    "Toggle password visibility",
    "True",
    "Type to search",
    "Value",
    "Welcome",
    "Welcome back to",
    "You have been successfully logged out from the administration",
)
QUOTED = re.compile(r"""_\((?P<quote>["'])(?P<words>.*?)(?P=quote)\)""")
PLACES = re.compile(r"\{\w*\}|%\(\w+\)s|%s")


@dataclass(frozen=True, order=True)
class Message:
    """Words to be translated."""

    words: str
    plural: str = ""
    context: str = ""


@cache
def messages() -> dict[Message, set[str]]:
    """All words of the interface, each with the files it stands in; read once a process."""
    found: dict[Message, set[str]] = defaultdict(set)
    for path in templates():
        for message in of_template(path):
            found[message].add(str(path.relative_to(BASE)))
    for folder in OWN:
        for path in sorted((BASE / folder).rglob("*.py")):
            for message in of_python(path):
                found[message].add(str(path.relative_to(BASE)))
    for app in OWN:
        if apps.is_installed(app):
            for words in labels.words(apps.get_app_config(app)):
                found[Message(words)].add(f"{app}/models")
    for tool in registry.built_in():  # what deciders are told of a call
        described = tool.parameters.get("properties", {}).values()
        for words in (tool.description, *(one.get("description", "") for one in described)):
            found[Message(words)].add("runs/tools")
    for title, items in SIDEBAR:
        for words in (title, *(item[0] for item in items)):
            found[Message(words)].add("config/unfold.py")
    for words in THEME:
        found[Message(words)].add("the theme")
    return {message: places for message, places in found.items() if re.search(r"[A-Za-z]", message.words)}


def templates() -> list[Path]:
    """Deputy's own templates."""
    folders = [BASE / "templates", *(BASE / app / "templates" for app in OWN)]
    return sorted(path for folder in folders for path in folder.rglob("*.html"))


def of_template(path: Path) -> Iterator[Message]:
    """The words of a template's tags, and of the filters' arguments."""
    text = path.read_text()
    template: Any = engines["django"].from_string(text)
    nodes: Any = template.template.nodelist
    for node in nodes.get_nodes_by_type(TranslateNode):
        context = node.message_context.var if node.message_context else ""
        if node.filter_expression.var.literal is not None:  # else the words of a variable
            yield Message(str(node.filter_expression.var.literal), context=str(context))
    for node in nodes.get_nodes_by_type(BlockTranslateNode):
        plural = node.render_token_list(node.plural)[0] if node.plural else ""
        yield Message(node.render_token_list(node.singular)[0], plural)
    for token in Lexer(text).tokenize():
        if token.token_type in (TokenType.VAR, TokenType.BLOCK):
            yield from (Message(found["words"]) for found in QUOTED.finditer(token.contents))


def of_python(path: Path) -> Iterator[Message]:
    """The words that a module looks up, or refuses with."""
    for node in ast.walk(ast.parse(path.read_text())):
        name = _name(node.func) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in LOOKUPS:
            context, words, plural = (_constant(node.args, place) for place in LOOKUPS[name])
            if words:
                yield Message(words, plural, context)


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _constant(arguments: list[ast.expr], place: int | None) -> str:
    if place is None or place >= len(arguments):
        return ""
    found = arguments[place]
    return found.value if isinstance(found, ast.Constant) and isinstance(found.value, str) else ""


# Text that nobody looks up

HIDDEN = re.compile(r"\{#.*?#\}|<!--.*?-->|<(script|style|code|kbd)\b.*?</\1>", re.DOTALL)
BLOCKS = re.compile(r"\{%\s*blocktrans.*?endblocktrans(late)?\s*%\}", re.DOTALL)
TAGS = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
SPOKEN = re.compile(r"""\b(?:placeholder|aria-label|title|alt)=(["'])(.*?)\1""", re.DOTALL)


def bare(path: Path) -> list[str]:
    """What a template says in English without looking it up."""
    text = TAGS.sub("", HIDDEN.sub("", BLOCKS.sub("", path.read_text())))
    said = [words for _, words in SPOKEN.findall(text)]
    said += re.sub(r"<[^>]*>", "\n", text).split("\n")
    return [words.strip() for words in said if re.search(r"[A-Za-z]{3}", words)]


# The catalogue


def read() -> Any:
    """The catalogue's source, as Babel reads it."""
    from babel.messages.pofile import read_po

    if not SOURCE.exists():
        from babel.messages.catalog import Catalog

        return Catalog(locale=LANGUAGE, domain="django", project="Deputy", fuzzy=False)
    with SOURCE.open("rb") as file:
        return read_po(file, locale=LANGUAGE)


def update(catalog: Any) -> Any:
    """A catalogue of today's words with the translations there are."""
    from babel.messages.catalog import Catalog

    made = Catalog(locale=LANGUAGE, domain="django", project="Deputy", fuzzy=False)
    made.mime_headers = [
        h for h in made.mime_headers if h[0] not in ("POT-Creation-Date", "PO-Revision-Date")
    ]
    for message, places in sorted(messages().items()):
        known = catalog.get(message.words, message.context or None)
        id = (message.words, message.plural) if message.plural else message.words
        same = known and bool(message.plural) == isinstance(known.id, tuple | list)
        string = known.string if same else ("",) if message.plural else ""
        flags = ["python-brace-format"] if PLACES.search(message.words) else []
        locations: Any = [(place, None) for place in sorted(places)]
        made.add(
            id,
            string or ("" if not message.plural else ("",)),
            locations,
            flags,
            context=message.context or None,
        )
    return made


def problems(catalog: Any) -> list[str]:
    """What is wrong with the catalogue, one line each: missing, left over, unsure, or with other places."""
    wanted = messages()
    known = {_message(entry): entry for entry in catalog if entry.id}
    lines = [f"not in the catalogue: {message.words!r}" for message in sorted(wanted) if message not in known]
    for message, entry in sorted(known.items()):
        strings = entry.string if isinstance(entry.string, tuple | list) else (entry.string,)
        if message not in wanted:
            lines.append(f"no longer used: {message.words!r}")
        elif not all(strings):
            lines.append(f"not translated: {message.words!r}")
        elif entry.fuzzy:
            lines.append(f"unsure: {message.words!r}")
        elif not message.plural and places(message.words) != places(strings[0]):
            lines.append(f"other places than in English: {message.words!r}")
    return lines


def places(text: str) -> set[str]:
    """The places that are filled in: {count}, %(count)s."""
    return set(PLACES.findall(text))


def _message(entry: Any) -> Message:
    ids = entry.id if isinstance(entry.id, tuple | list) else (entry.id, "")
    return Message(ids[0], ids[1], entry.context or "")


def compiled(catalog: Any) -> bytes:
    """The catalogue as Django reads it."""
    from babel.messages.mofile import write_mo

    file = BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def write(catalog: Any) -> None:
    """Keep the catalogue, source and compiled."""
    from babel.messages.pofile import write_po

    SOURCE.parent.mkdir(parents=True, exist_ok=True)
    with SOURCE.open("wb") as file:
        write_po(file, catalog, width=110, omit_header=False, include_lineno=False, sort_output=True)
    COMPILED.write_bytes(compiled(catalog))
