"""The table of who may do what, as docs/security.md prints it: made of policy/authority.py, row by row."""

from groups.member_permissions import standard
from policy.authority import ARRANGED, SPEAK, VERBS, Need

HEAD = (
    "| verb | what it is | permission | standard roles with it | token's scope | whose | takes |\n"
    "|---|---|---|---|---|---|---|"
)


def table() -> str:
    """The table in Markdown."""
    return "\n".join([HEAD, *(_row(str(verb), need) for verb, need in VERBS.items())])


def _row(verb: str, need: Need) -> str:
    permissions = ", ".join(f"`{one}`" for one in need.permissions) or "none"
    scope = ", ".join(f"`{one}`" for one in need.scopes) or "any"
    roles = _roles(verb, need)
    return f"| `{verb}` | {need.does} | {permissions} | {roles} | {scope} | {_whose(need)} | {_takes(need)} |"


def _roles(verb: str, need: Need) -> str:
    """The standard roles that carry the permissions; to arrange things takes those on their models."""
    wanted = set(need.permissions)
    if verb in ARRANGED.values():
        wanted |= {label.replace(".", ".add_") for label, by in ARRANGED.items() if by == verb}
    return ", ".join(role for role, carried in standard().items() if carried >= wanted) if wanted else "any"


def _whose(need: Need) -> str:
    if need.only_own:
        return "one's own only"
    return "one's own without the permission, others' with it" if need.own else "anybody's in one's projects"


def _takes(need: Need) -> str:
    found = []
    if need.words or need.scope == SPEAK:
        found.append("the person: Deputy's pages, its terminal, or a token with the scope by name")
    if need.whole:
        found.append("a member of all projects, where it holds for all of them")
    found.append("a membership" + (", or a superuser at Deputy's pages" if need.operator else ""))
    return "; ".join(found)
