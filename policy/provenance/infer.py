"""What a tool's results are worth and which arguments steer it, read from its name, description and schema.

Everything not understood is taken for the worse: a result is an outsider's, an argument steers.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from policy.provenance import lexicon
from policy.provenance.terms import TRUSTED, Trust
from policy.provenance.verbs import own_verb, split, verb_of
from policy.provenance.words import WORD, normalise

Origin = Literal["inferred", "declared", "corrected"]
EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What policy knows of a tool's values.

    `output_trust` holds for every field of a result except those that `fields` names. `steering`: arguments
    that decide where an effect goes; `content`: those that do not. An argument in neither steers. What stands
    in an object that is content is judged by its own name, as an argument is: `message/toRecipients` steers.
    """

    output_trust: Trust = "outside"
    fields: Mapping[str, Trust] = field(default_factory=dict)
    steering: frozenset[str] = frozenset()
    content: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()  # content that somebody has called so: all that is in it
    listed: frozenset[tuple[str, str]] = frozenset()  # (argument of a kind, a value its schema speaks of)
    arguments: frozenset[str] | None = None  # those that its schema has; None: nobody knows
    named: frozenset[str] | None = None  # the same with the names of their parts, at any depth
    effect: bool = True
    deeds: frozenset[str] = frozenset()
    verb: str = ""  # its own, where the lexicon knows none: a request that commands it asks for the tool
    matter: str = ""
    nouns: frozenset[str] = frozenset()  # what it is about: its results' ids are ids of these
    keeps: bool = False  # its results are records of its own service, not texts that others wrote
    confidential: frozenset[str] = frozenset()  # fields of its results that must not go to others unasked
    service: str = ""  # the server that offers it; empty for the organization's own tools
    network: bool = False  # its arguments leave for an address outside
    origin: Origin = "inferred"
    reasons: tuple[str, ...] = ()

    def trust_of(self, key: str) -> Trust:
        """What a field of a result is worth."""
        found = self.fields.get(key)
        if found is not None:
            return found
        words = split(key)
        if self.output_trust in TRUSTED:
            return "outside" if words and words[-1] in lexicon.FREE else self.output_trust
        own = bool(words) and words[-1] in ("id", "ids") and not self.network
        return self.fields.get("id", self.output_trust) if own else self.output_trust

    def kept(self, key: str) -> bool:
        """Whether a field of its records is the service's own: nobody else writes into it freely."""
        words = list(map(singular, split(key)))
        corrected = EVERYTHING in self.fields and not self.service
        if not self.keeps or not words or corrected or words[-1] in lexicon.FREE:
            return False
        return words[-1] in lexicon.WHO if self.nouns & lexicon.WRITTEN else True

    def kind(self, key: str) -> frozenset[str]:
        """What a value of this name is a value of: an `order_id` of an order, an `id` of what it is about."""
        words = frozenset(map(singular, split(key)))
        return words - lexicon.GENERIC or self.nouns

    def steers(self, argument: str, path: str = "") -> bool:
        """Whether what stands at this path in the argument decides where the effect goes."""
        if argument in self.steering or argument not in self.content:
            return True
        inner = [] if argument in self.told else [part for part in path.split("/")[1:] if not part.isdigit()]
        says = next((says for says in map(_says_what, reversed(inner)) if says is not None), None)
        return bool(inner) and not says

    def of_others(self, acts: bool, service: str = "") -> "Declaration":
        """The same of a tool that somebody else's server offers: all it returns is outside's. What the named
        service keeps is trusted for its own tools alone. `acts` is asked where nobody knows the verb.
        """
        known = bool(self.deeds)
        return replace(
            self,
            output_trust="outside",
            fields={EVERYTHING: "outside"},
            service=service,
            effect=acts or (self.effect and known),
        )

    def corrected(self, change: Mapping[str, Any]) -> "Declaration":
        """With an admin's word in place of these of its parts that the change names."""
        known = {
            name: change[name]
            for name in ("output_trust", "fields", "effect")
            if change.get(name) is not None
        }
        if change.get("confidential") is not None:
            known["confidential"] = frozenset(change["confidential"])
        for name, other in (("steering", "content"), ("content", "steering")):
            if change.get(name) is not None:
                known[name] = frozenset(change[name])
                known.setdefault(other, getattr(self, other) - known[name])
        if change.get("content") is not None:
            known["told"] = known["content"]
        return replace(self, **known, origin="corrected") if known else self


UNKNOWN_TOOL = Declaration()


def declare(
    name: str, description: str, parameters: Mapping[str, Any], effect: bool, **said: Any
) -> Declaration:
    """A declaration in code: what is inferred, with what the tool's author says in place of it."""
    return replace(infer(name, description, parameters, effect).corrected(said), origin="declared")


def infer(
    name: str, description: str, parameters: Mapping[str, Any], effect: bool | None = None
) -> Declaration:
    """The declaration of a tool nobody declared. `effect`: whether it does more than read, where known."""
    words = split(name)
    verb = verb_of(words, description)
    nouns = _head(words[words.index(verb) + 1 :] if verb in words else words[1:])
    properties: Mapping[str, Any] = parameters.get("properties") or {}
    deeds = _deeds(verb, words, properties)
    reads = deeds == {"read"} if effect is None else not effect and "confirm" not in deeds
    network = _network(words, properties, description)
    trust, why = _output(nouns, words, network)
    content = frozenset(
        key
        for key, schema in properties.items()
        if _is_content(key, schema, parameters, reads and network)
        or ("confirm" in deeds and lexicon.PROOF.intersection(split(key)))
    )
    return Declaration(
        output_trust=trust,
        steering=frozenset(properties) - content,
        content=content,
        listed=frozenset(_listed(parameters)),
        arguments=frozenset(properties),
        named=frozenset(name for name, _ in _properties(parameters)),
        effect=not reads,
        deeds=deeds,
        verb="" if deeds else own_verb(words, description),
        matter=_matter(words),
        nouns=frozenset(map(singular, words)) - {verb},
        keeps=not network and not _texts(verb, nouns),
        network=network,
        reasons=(why, *_argument_reasons(properties, content)),
    )


def akin(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a value read as one kind may be used as the other."""
    return bool(one & other) or any(one & family and other & family for family in lexicon.FAMILIES)


def singular(word: str) -> str:
    """A noun as one of its kind."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _texts(verb: str, nouns: list[str]) -> bool:
    """Whether the results are texts, whatever they look like: a file's contents, a page, what was said."""
    return verb in lexicon.READS_TEXT and bool({singular(noun) for noun in nouns} & lexicon.TEXTS)


def _head(words: list[str]) -> list[str]:
    """The noun phrase before the first preposition: users, of `get users in channel`."""
    for place, word in enumerate(words):
        if word in lexicon.PREPOSITIONS:
            return words[:place]
    return words


def _deeds(verb: str, words: list[str], properties: Mapping[str, Any]) -> frozenset[str]:
    """What a tool does, by its verb; nothing for a verb that is not known."""
    if verb in lexicon.PROVES and any(lexicon.PROOF & set(split(key)) for key in properties):
        return frozenset({"confirm"})
    if verb in lexicon.READS:
        return frozenset({"read"})
    found = frozenset(deed for deed, verbs in lexicon.MEANS.items() if verb in verbs)
    if lexicon.BASKET.intersection(words) and found & {"create", "pay"}:
        return found | {"pay"}
    return found | {"pay"} if found & {"send", "create"} and _matter(words) == "money" else found


def _matter(words: list[str]) -> str:
    """The matter a request must name before the tool may be meant."""
    for matter, nouns in lexicon.MATTERS.items():
        if nouns.intersection(words[1:]):
            return matter
    return ""


def _network(words: list[str], properties: Mapping[str, Any], description: str) -> bool:
    """Whether it reaches an address that an argument names, or the web at large."""
    named = any(word in lexicon.ADDRESSED for key in properties for word in split(key))
    return (
        named
        or any(word in lexicon.NETWORK for word in words)
        or bool(re.search(r"\b(?:web ?(?:page|site|search)|internet)\b", description.lower()))
    )


def _output(nouns: list[str], words: list[str], network: bool) -> tuple[Trust, str]:
    if network:
        return "outside", "it reads from addresses outside"
    head = nouns[-1] if nouns else ""
    for kinds, what in (
        (lexicon.CLOCK, "a clock"),
        (lexicon.DIRECTORY, "a directory the organization keeps"),
        (lexicon.AGENDA, "a calendar the organization keeps; titles and descriptions are others' words"),
        (lexicon.OWN, "the account's own data"),
    ):
        if head in kinds and not set(nouns) & lexicon.FREE:
            return "organization", f"'{head}' is {what}"
    if head in lexicon.ABOUT and set(nouns) & lexicon.SELF:
        return "organization", f"'{head}' is the person's own"
    return "outside", f"'{head}' may hold what others wrote" if head else "nothing says what it returns"


def _is_content(key: str, schema: Any, parameters: Mapping[str, Any], leaves: bool) -> bool:
    """Whether an argument says what rather than where to. Where all of them leave for the web, none does."""
    if leaves:
        return False
    words = split(key)
    if lexicon.REDUCTION.intersection(words) and words[-1] in lexicon.REDUCTION | {"code", "codes"}:
        return True
    if not words or words[-1] in lexicon.IDENTIFIER:
        return False
    if _is_option(schema, parameters):
        return True
    if lexicon.KINDS.intersection(words):
        return isinstance(schema, Mapping) and schema.get("type") in ("integer", "number")
    return _says_what(key) is True


def _says_what(name: str) -> bool | None:
    """Whether a value of this name says what, rather than where to; None where nobody knows the name."""
    words = split(name)
    if lexicon.KINDS.intersection(words) or (words and words[-1] in lexicon.IDENTIFIER):
        return False
    if any(word in lexicon.STEERING for word in words) and words[-1] not in lexicon.CONTENT | lexicon.OPTION:
        return False
    return any(word in lexicon.CONTENT or word in lexicon.OPTION for word in words) or None


def _listed(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The values that the schema of an argument of a kind speaks of: as a choice, by default, or in words."""
    for name, schema in _properties(parameters):
        if lexicon.KINDS.intersection(split(name)):
            said = f"{schema} {_referred(schema, parameters)}"
            yield from ((name, word) for word in WORD.findall(normalise(said)))


def _properties(schema: Any) -> Iterator[tuple[str, Any]]:
    """What is said of the parts of objects, at any depth."""
    if isinstance(schema, Mapping) and isinstance(schema.get("properties"), Mapping):
        yield from schema["properties"].items()
    parts = schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ()
    for part in parts:
        yield from _properties(part)


def _is_option(schema: Any, parameters: Mapping[str, Any]) -> bool:
    """A choice among values the schema lists, or yes and no."""
    if not isinstance(schema, Mapping):
        return False
    schema = _referred(schema, parameters) or schema
    return schema.get("type") == "boolean" or "enum" in schema or "const" in schema


def _referred(schema: Any, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference of a schema stands for; nothing where it is none."""
    reference = schema.get("$ref", "") if isinstance(schema, Mapping) else ""
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return {}
    return (parameters.get("$defs") or {}).get(reference[8:]) or {}


def _argument_reasons(properties: Mapping[str, Any], content: frozenset[str]) -> tuple[str, ...]:
    return tuple(f"{key}: {'content' if key in content else 'steers'}" for key in properties)
