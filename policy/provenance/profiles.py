"""The shipped profiles: when a call asks, by where its values came from."""

from policy.provenance.terms import Facts, Profile, Traced


def asks(profile: Profile, facts: Facts) -> str:
    """Why the profile wants somebody's decision; empty where it lets the call pass."""
    if profile == "careful":
        return "it does more than read" if facts.effect else ""
    if profile == "balanced" and facts.effect:
        return _balanced(facts)
    return ""


def _balanced(facts: Facts) -> str:
    reasons = [_words(value) for value in facts.doubtful[:3]]
    if not facts.asked_for:
        reasons.insert(0, facts.why_not_asked_for)
    return "; ".join(reasons)


def _words(value: Traced) -> str:
    said = "comes from outside" if value.trust == "outside" else "has no known source"
    shown = value.value if len(value.value) <= 80 else f"{value.value[:79]}…"
    return f"{value.path.split('/')[0]} '{shown}' {said}" + (f" ({value.why})" if value.why else "")
