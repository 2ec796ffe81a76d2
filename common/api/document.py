"""The OpenAPI document as a whole: what is the same in many operations stands there once."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from common.canonical import canonical, digest

PROBLEM = "application/problem+json"


def tidied(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular's: names the tags, shares problems, drops a `nullable` that says nothing."""
    without_idle_nullable(result)
    result["tags"] = [
        {"name": tag} for tag in sorted({tag for each in operations(result) for tag in each["tags"]})
    ]
    share_problems(result)
    return result


def operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        yield from methods.values()


def share_problems(document: dict[str, Any]) -> None:
    """A problem that several operations have stands in components/responses, named by its codes."""
    found = [
        (each["responses"], status, answer)
        for each in operations(document)
        for status, answer in each["responses"].items()
        if PROBLEM in answer.get("content", {})
    ]
    often = Counter(_key(answer) for _, _, answer in found)
    shared = document["components"].setdefault("responses", {})
    names: dict[str, str] = {}
    for responses, status, answer in found:
        key = _key(answer)
        if often[key] > 1:
            name = names.setdefault(key, _name(status, answer, shared))
            shared[name] = answer
            responses[status] = {"$ref": f"#/components/responses/{name}"}
    document["components"]["responses"] = dict(sorted(shared.items()))


def _key(answer: dict[str, Any]) -> str:
    return digest("", canonical(answer))


def _name(status: str, answer: dict[str, Any], taken: dict[str, Any]) -> str:
    """`404.NOT_FOUND`; with a number behind it where another has the same codes in other words."""
    examples = answer["content"][PROBLEM].get("examples", {})
    name = ".".join([status, *(each["value"]["code"] for each in examples.values())])
    same = sum(1 for each in taken if each == name or each.startswith(f"{name}_"))
    return f"{name}_{same + 1}" if same else name


def without_idle_nullable(part: Any) -> None:
    """Where a schema has no type, null is as good as any other value, and OpenAPI 3.0 knows no `nullable`."""
    if isinstance(part, dict):
        if part.get("nullable") is True and not {"type", "$ref", "allOf", "oneOf", "anyOf"} & part.keys():
            del part["nullable"]
        for each in part.values():
            without_idle_nullable(each)
    elif isinstance(part, list):
        for each in part:
            without_idle_nullable(each)
