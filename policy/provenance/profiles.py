"""The shipped profiles: when a call asks, by where its values came from."""

from policy.provenance.terms import Facts, Profile, Traced

MOST_TOLD = 3


def asks(profile: Profile, facts: Facts) -> str:
    """Why the profile wants somebody's decision; empty where it lets the call pass."""
    if profile == "careful":
        return "it does more than read" if facts.effect else ""
    if profile == "balanced" and facts.effect:
        return _balanced(facts)
    return ""


def _balanced(facts: Facts) -> str:
    reasons = [] if facts.asked_for else [facts.why_not_asked_for]
    if facts.carries:
        reasons.append(f"it takes confidential values to others ({', '.join(facts.carries)})")
    return "; ".join(dict.fromkeys((*reasons, *map(_words, facts.doubtful[:MOST_TOLD]))))


def _words(value: Traced) -> str:
    """The argument's name and never its value: the words go into mails."""
    said = "comes from outside" if value.trust == "outside" else "has no known source"
    argument, _, inside = value.path.partition("/")
    return (
        f"{argument} {said}"
        if not inside or inside.partition("/")[0].isdecimal()
        else f"something in {argument} {said}"
    )
