"""A call as its tool's preview has it: its parts in order, the rest beside them, and what approving does."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from common.lookalikes import visible
from common.whom import host_of, short
from runs.deciding.compare import key_of
from runs.deciding.words import Item, Line
from runs.tools.base import Tool
from runs.tools.previews import PARTS, RECIPIENTS, Preview

IN_BUTTON = 40  # characters of a value that stand in the button
SEVERAL = re.compile(r"[,;\s]+")
LABELS = {
    ("mail", "to"): gettext_lazy("To"),
    ("mail", "cc"): gettext_lazy("Copy to"),
    ("mail", "bcc"): gettext_lazy("Blind copy to"),
    ("mail", "subject"): gettext_lazy("Subject"),
    ("mail", "body"): gettext_lazy("Text"),
    ("http", "method"): gettext_lazy("Method"),
    ("http", "url"): gettext_lazy("Address"),
    ("http", "headers"): gettext_lazy("Headers"),
    ("http", "body"): gettext_lazy("Body"),
    ("file", "path"): gettext_lazy("File"),
    ("file", "content"): gettext_lazy("Contents"),
    ("payment", "amount"): gettext_lazy("Amount"),
    ("payment", "currency"): gettext_lazy("Currency"),
    ("payment", "to"): gettext_lazy("Paid to"),
    ("payment", "reference"): gettext_lazy("Reference"),
    ("sql", "database"): gettext_lazy("Database"),
    ("sql", "statement"): gettext_lazy("Statement"),
    ("sql", "parameters"): gettext_lazy("Parameters"),
}


@dataclass(frozen=True)
class Effect:
    """What would happen, as the button and the heading say it."""

    button: str
    heading: str


def arranged(lines: Sequence[Line], preview: Preview | None) -> list[Line]:
    """The lines in the order of the preview's parts, named as people name them; then all the others."""
    if preview is None:
        return list(lines)
    found: list[Line] = []
    for part in PARTS[preview.kind]:
        label = str(LABELS.get((preview.kind, part), ""))
        if part in preview.parts:
            mine = [line for line in lines if line.argument == preview.parts[part]]
            found += [_as_part(line, part, label) for line in mine]
        elif part in preview.fixed:
            found.append(Line(part, visible(preview.fixed[part]), title=label, part=part))
    named = set(preview.parts.values())
    return [*found, *(line for line in lines if line.argument not in named)]


def _as_part(line: Line, part: str, label: str) -> Line:
    return replace(line, part=part, title=label if line.name == visible(line.argument) else line.title)


def counted(lines: Sequence[Line], targets: frozenset[str], new: frozenset[str] | None) -> list[Line]:
    """Lists with what they amount to: `30 recipients in 30 domains, 28 never approved before`."""
    return [_counted(line, targets, new) for line in lines]


def _counted(line: Line, targets: frozenset[str], new: frozenset[str] | None) -> Line:
    if not line.items:
        return line
    keys = [key_of(item.text) for item in line.items]
    steers = targets.issuperset(keys)
    hosts = {host for item in line.items if (host := host_of(item.text))}
    addresses = all(host_of(item.text) and "://" not in item.text for item in line.items)
    said = [_how_many(len(set(keys)), steers and addresses)]
    if hosts:
        said[0] += " " + ngettext("in {count} domain", "in {count} domains", len(hosts)).format(
            count=len(hosts)
        )
    if len(set(keys)) < len(keys):
        said.append(_("some of them twice"))
    if not steers or new is None:
        return replace(line, summary=", ".join(said))
    fresh = len(new.intersection(keys))
    if fresh:
        said.append(
            ngettext("{count} never approved before", "{count} never approved before", fresh).format(
                count=fresh
            )
        )
    items = tuple(Item(item.text, key_of(item.text) in new) for item in line.items)
    in_order = tuple(sorted(items, key=lambda item: not item.new))
    return replace(line, summary=", ".join(said), items=in_order, mark="")  # each entry says it for itself


def _how_many(count: int, recipients: bool) -> str:
    if recipients:
        return ngettext("{count} recipient", "{count} recipients", count).format(count=count)
    return ngettext("{count} entry", "{count} entries", count).format(count=count)


def effect(name: str, tool: Tool | None, arguments: Mapping[str, Any]) -> Effect:
    """What approving the call does. Of a tool without a preview only its name is known to be true."""
    preview = tool.preview if tool else None
    found = _effect(preview, arguments) if preview else None
    return found or Effect(_("Approve {tool}").format(tool=visible(name)), "")


def _effect(preview: Preview, arguments: Mapping[str, Any]) -> Effect | None:
    said = {part: arguments.get(argument) for part, argument in preview.parts.items()} | dict(preview.fixed)
    if preview.does:
        does = _(preview.does)
        return Effect(_("Approve and {does}").format(does=does), does)
    return SAID[preview.kind](said) if preview.kind in SAID else None


def _mail(said: Mapping[str, Any]) -> Effect:
    named = (one for part in RECIPIENTS for text in _texts(said.get(part)) for one in _addresses(text))
    people = list(dict.fromkeys(map(key_of, named)))
    if len(people) == 1:
        who = _cut(people[0])
        return Effect(
            _("Approve and send to {who}").format(who=who), _("send a mail to {who}").format(who=who)
        )
    count = len(people)
    button = ngettext("Approve and send to {count} person", "Approve and send to {count} people", count)
    heading = ngettext("send a mail to {count} person", "send a mail to {count} people", count)
    return Effect(button.format(count=count), heading.format(count=count))


def _http(said: Mapping[str, Any]) -> Effect:
    method = _cut(said.get("method") or "GET").upper()
    host = _cut(host_of(str(said.get("url") or "")) or said.get("url"))
    if method in ("GET", "HEAD"):
        return Effect(
            _("Approve and fetch from {host}").format(host=host), _("fetch from {host}").format(host=host)
        )
    button = _("Approve and send {method} to {host}").format(method=method, host=host)
    return Effect(button, _("send {method} to {host}").format(method=method, host=host))


def _file(said: Mapping[str, Any]) -> Effect:
    path = _cut(said.get("path"))
    return Effect(_("Approve and write {path}").format(path=path), _("write {path}").format(path=path))


def _payment(said: Mapping[str, Any]) -> Effect:
    amount = _cut(f"{said.get('amount', '')} {said.get('currency') or ''}".strip())
    paid = list(_texts(said.get("to")))
    who = _cut(paid[0]) if len(paid) == 1 else _how_many(len(paid), True)
    if not paid:
        return Effect(
            _("Approve and pay {amount}").format(amount=amount), _("pay {amount}").format(amount=amount)
        )
    button = _("Approve and pay {amount} to {who}").format(amount=amount, who=who)
    return Effect(button, _("pay {amount} to {who}").format(amount=amount, who=who))


def _sql(said: Mapping[str, Any]) -> Effect:
    return Effect(_("Approve and run this statement"), _("run a statement on a database"))


SAID = {"mail": _mail, "http": _http, "file": _file, "payment": _payment, "sql": _sql}


def _texts(value: Any) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, str) and one.strip():
            yield one.strip()


def _addresses(text: str) -> list[str]:
    """Those that stand in one text beside each other; of one that holds none, the text."""
    return [one for one in SEVERAL.split(text) if "@" in one] or [text]


def _cut(value: Any) -> str:
    return short(str("" if value is None else value), IN_BUTTON)
