"""Traces, tools and rules for a replay, from files. Every error names the file and the line."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import jsonl
from common.jsonl import BadFile
from policy import checks
from policy.provenance.infer import Declaration, infer
from policy.provenance.terms import PROFILES, RANK
from policy.replay import READ, SIDE_EFFECT, Call, Policy, Trace
from policy.risk import guessed
from policy.ruleset import Rule
from policy.terms import Binding, ToolInfo
from policy.tools import ToolFacts

Suites = dict[str, dict[str, ToolFacts]]

POLICY_KEYS = {"rules", "bindings", "allowed_tools", "denied_tools", "profile"}
DECLARED_KEYS = {"output_trust", "fields", "steering", "content", "effect", "confidential"}
RULE_KEYS = {"id", "name", "effect", "capability", "tool", "condition", "shadow"}


def read_tools(path: Path) -> Suites:
    """suite → name → tool, with the capability `read` or `side_effect`: as `read_only` says, or its name."""
    suites: Suites = {}
    for place, row in jsonl.read(path):
        suite, name = _field(row, place, "suite", str), _field(row, place, "name", str)
        parameters = _field(row, place, "parameters", dict) if "parameters" in row else {}
        said = _field(row, place, "description", str) if "description" in row else ""
        risk = guessed(name, parameters, said)
        if "read_only" in row:
            risk = "low" if _field(row, place, "read_only", bool) else "high"
        info = ToolInfo(name, risk, (READ if risk == "low" else SIDE_EFFECT,))
        declaration = infer(name, said, parameters, risk != "low")
        if "declaration" in row:
            change = _field(row, place, "declaration", dict)
            declaration = _corrected(declaration, change, f"{place}: {name}")
        known = suites.setdefault(suite, {})
        if name in known and known[name].info != info:
            raise BadFile(f"{place}: {suite} has another tool '{name}', which differs in read_only")
        known[name] = ToolFacts(info, parameters, declaration)
    return suites


def read_traces(traces: Path, labels: Path, tools: Suites) -> list[Trace]:
    """The traces with what their labels say of them; every trace has one label, and every label a trace."""
    known = dict(_labels(labels))
    found = []
    for place, row in jsonl.read(traces):
        name = _field(row, place, "id", str)
        if name not in known:
            raise BadFile(f"{place}: {labels.name} has no label for '{name}', or the trace stands here twice")
        label_place, attack, injected, solved = known.pop(name)
        calls = _calls(row, place, tools)
        if len(calls) != len(injected):
            raise BadFile(
                f"{label_place}: injected has {len(injected)} entries, the trace {len(calls)} calls"
            )
        turns = tuple(_turns(row, place, len(calls)))
        marked = tuple(
            Call(tool, arguments, mark, result)
            for (tool, arguments, result), mark in zip(calls, injected, strict=True)
        )
        prompt = str(row.get("prompt") or "")
        found.append(Trace(name, row["suite"], attack, marked, prompt, turns, solved))
    for name, (place, *_) in known.items():
        raise BadFile(f"{place}: {traces.name} has no trace '{name}'")
    return found


def _turns(row: Mapping[str, Any], place: str, calls: int) -> Iterator[tuple[int, str]]:
    """What the person said later: [{"after": how many calls stand before it, "text": …}]."""
    for number, turn in enumerate(row.get("turns") or [], 1):
        at = f"{place}, turn {number}"
        if not isinstance(turn, dict):
            raise BadFile(f"{at}: not an object")
        after = _field(turn, at, "after", int)
        if not 0 <= after <= calls:
            raise BadFile(f"{at}: after is a number of calls, 0 to {calls}")
        yield after, _field(turn, at, "text", str)


def _labels(path: Path) -> Iterator[tuple[str, tuple[str, bool, list[bool], bool | None]]]:
    seen = set()
    for place, row in jsonl.read(path):
        name, kind = _field(row, place, "id", str), _field(row, place, "kind", str)
        injected = _field(row, place, "injected", list)
        if kind not in ("benign", "attack"):
            raise BadFile(f"{place}: kind is benign or attack, not '{kind}'")
        if not all(isinstance(mark, bool) for mark in injected):
            raise BadFile(f"{place}: injected holds true and false only")
        if name in seen:
            raise BadFile(f"{place}: '{name}' has a label already")
        seen.add(name)
        solved = _field(row, place, "solved", bool) if "solved" in row else None
        yield name, (place, kind == "attack", injected, solved)


def _calls(row: Mapping[str, Any], place: str, tools: Suites) -> list[tuple[str, dict[str, Any], Any]]:
    suite, calls = _field(row, place, "suite", str), _field(row, place, "calls", list)
    if suite not in tools:
        raise BadFile(f"{place}: there are no tools of the suite '{suite}'")
    found = []
    for number, call in enumerate(calls, 1):
        if not isinstance(call, dict):
            raise BadFile(f"{place}: call {number} is not an object")
        tool = _field(call, f"{place}, call {number}", "tool", str)
        if tool not in tools[suite]:
            raise BadFile(f"{place}, call {number}: the suite '{suite}' has no tool '{tool}'")
        arguments = _field(call, f"{place}, call {number}", "arguments", dict)
        found.append((tool, arguments, call.get("result")))
    return found


def read_policy(path: Path, tools: Suites) -> Policy:
    """A list of rules, or {rules, bindings, allowed_tools, denied_tools, profile}.

    A rule has `effect`, `tool` or `capability`, and if wanted `condition`, `name`, `shadow`. Tools have the
    capability `read` or `side_effect`; bindings {tool: pattern, capability} add others. Unless
    `allowed_tools` says otherwise the role's list names every tool: the rules alone decide. Null leaves
    tools to their risk.
    """
    said = _json(path)
    said = {"rules": said} if isinstance(said, list) else said
    if not isinstance(said, dict) or not said.keys() <= POLICY_KEYS:
        raise BadFile(f"{path}: a list of rules, or an object of {', '.join(sorted(POLICY_KEYS))}")
    bindings = tuple(_bindings(said, path))
    rules = tuple(
        _rule(rule, f"{path}, rule {number}", number, bindings, tools)
        for number, rule in enumerate(_field(said, str(path), "rules", list), 1)
    )
    every = sorted({name for named in tools.values() for name in named})
    allowed = said.get("allowed_tools", every)
    profile = said.get("profile", "off")
    if profile not in PROFILES:
        raise BadFile(f"{path}: profile is one of {', '.join(PROFILES)}")
    return Policy(
        rules,
        bindings,
        None if allowed is None else tuple(_texts(allowed, path, "allowed_tools")),
        tuple(_texts(said.get("denied_tools", []), path, "denied_tools")),
        profile,
    )


def declared(path: Path, tools: Suites) -> Suites:
    """The tools with what a file declares of them: {tool: {output_trust, fields, steering, content, effect,
    confidential}}, as an administrator corrects what is inferred.
    """
    said = _json(path)
    if not isinstance(said, dict):
        raise BadFile(f"{path}: an object of tools, each with what is declared of it")
    for name in said.keys() - {name for named in tools.values() for name in named}:
        raise BadFile(f"{path}: there is no tool '{name}'")
    return {
        suite: {
            name: replace(facts, declaration=_corrected(facts.declaration, said[name], f"{path}: {name}"))
            if name in said
            else facts
            for name, facts in named.items()
        }
        for suite, named in tools.items()
    }


def _corrected(declaration: Declaration, change: Any, place: str) -> Declaration:
    if not isinstance(change, dict) or not change.keys() <= DECLARED_KEYS:
        raise BadFile(f"{place}: an object of {', '.join(sorted(DECLARED_KEYS))}")
    trusts = [change["output_trust"]] if "output_trust" in change else []
    fields = _field(change, place, "fields", dict) if "fields" in change else {}
    for trust in (*trusts, *fields.values()):
        if trust not in RANK:
            raise BadFile(f"{place}: {trust!r} is none of {', '.join(RANK)}")
    for key in ("steering", "content", "confidential"):
        if key in change and not all(isinstance(each, str) for each in _field(change, place, key, list)):
            raise BadFile(f"{place}: {key} is a list of names")
    if "effect" in change:
        _field(change, place, "effect", bool)
    return declaration.corrected(change)


def _json(path: Path) -> Any:
    try:
        return json.loads(jsonl.text_of(path))
    except json.JSONDecodeError as error:
        raise BadFile(f"{path}, line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise BadFile(f"{path}: nested too deeply") from error


def _bindings(said: Mapping[str, Any], path: Path) -> Iterator[Binding]:
    for number, row in enumerate(said.get("bindings") or [], 1):
        place = f"{path}, binding {number}"
        if not isinstance(row, dict):
            raise BadFile(f"{place}: not an object")
        pattern, capability = _field(row, place, "tool", str), _field(row, place, "capability", str)
        if problem := checks.pattern_problem(pattern):
            raise BadFile(f"{place}: {problem}")
        yield Binding(pattern, capability)


def _rule(row: Any, place: str, number: int, bindings: tuple[Binding, ...], tools: Suites) -> Rule:
    if not isinstance(row, dict) or not row.keys() <= RULE_KEYS:
        raise BadFile(f"{place}: an object of {', '.join(sorted(RULE_KEYS))}")
    texts = {key: _field(row, place, key, str) for key in row if key != "shadow" and row[key] is not None}
    about = [
        facts
        for named in tools.values()
        for facts in checks.concerned(named, bindings, texts.get("tool", ""), texts.get("capability"))
    ]
    if not about and ("tool" in texts or "capability" in texts):
        raise BadFile(f"{place}: no tool is called, or has the capability, it names")
    problems = checks.condition_problems(texts["condition"], about) if "condition" in texts else []
    if problems:
        raise BadFile(f"{place}: {'; '.join(problems)}")
    try:
        shadow = _field(row, place, "shadow", bool) if "shadow" in row else False
        return Rule(**{"id": str(number), "effect": "", **texts, "shadow": shadow})
    except ValueError as error:
        raise BadFile(f"{place.rpartition(', ')[0]}: {error}") from error


def _texts(value: Any, path: Path, key: str) -> Iterable[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadFile(f"{path}: {key} is a list of tool names")
    return value


def _field(row: Mapping[str, Any], place: str, key: str, kind: type) -> Any:
    if key not in row:
        raise BadFile(f"{place}: {key} is missing")
    if not isinstance(row[key], kind):
        raise BadFile(f"{place}: {key} is not a {kind.__name__}")
    return row[key]
