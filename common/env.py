"""Settings read from environment variables: a bad one is refused at start, by name, in one line.

Nothing here echoes a value: it may be a secret pasted into the wrong variable.
"""

import os
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any
from urllib.parse import unquote, urlsplit

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")


class BadSetting(Exception):
    """An environment variable cannot be used; the message names it and says what is accepted."""


def text(name: str, default: str) -> str:
    """The variable's value without surrounding blanks; unset or empty means `default`."""
    return os.environ.get(name, "").strip() or default


def whole_number(name: str, default: int, *, least: int = 1, most: int | None = None) -> int:
    """A whole number between `least` and `most`. Raises BadSetting."""
    value = text(name, str(default))
    accepted = f"a whole number of at least {least}" + (f" and at most {most}" if most is not None else "")
    if not (value.isascii() and value.isdigit()):
        raise BadSetting(f"{name} is not a whole number; it takes {accepted}.")
    number = int(value[:20])
    if number < least or (most is not None and number > most):
        raise BadSetting(f"{name} is out of range; it takes {accepted}.")
    return number


def flag(name: str, default: bool) -> bool:
    """A yes or no. Raises BadSetting."""
    value = text(name, str(default)).lower()
    if value not in TRUE + FALSE:
        raise BadSetting(f"{name} is neither yes nor no; it takes one of {', '.join(TRUE + FALSE)}.")
    return value in TRUE


def _entries(name: str, default: Sequence[str] = ()) -> list[str]:
    return [entry for entry in map(str.strip, text(name, ",".join(default)).split(",")) if entry]


def names(name: str, default: Sequence[str]) -> list[str]:
    """A comma-separated list without empty entries. Raises BadSetting for a list of nothing."""
    entries = _entries(name, default)
    if default and not entries:
        raise BadSetting(f"{name} names nothing; it takes names separated by commas.")
    if any(any(mark in entry for mark in " /'\"") for entry in entries):
        raise BadSetting(f"{name} has an entry with a blank, slash or quote; it takes bare names and commas.")
    return entries


def paths(name: str) -> dict[str, str]:
    """{name: path} of `name=package.module:object, …`; a path alone is its own name. Raises BadSetting."""
    found: dict[str, str] = {}
    for entry in _entries(name):
        own, equals, path = (part.strip() for part in entry.partition("="))
        path = path if equals else own
        if not own or not all(part.isidentifier() for part in path.replace(":", ".", 1).split(".")):
            raise BadSetting(
                f"{name} has an entry that is no path; it takes package.module:object and commas."
            )
        found[own] = path
    return found


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """A comma-separated list of addresses and networks (`10.0.0.0/8`). Raises BadSetting."""
    try:
        return [ip_network(entry) for entry in _entries(name)]
    except ValueError:
        raise BadSetting(f"{name} has an entry that is no network; it takes 10.0.0.0/8 and commas.") from None


def choice(name: str, default: str, accepted: Sequence[str]) -> str:
    """One of the accepted words. Raises BadSetting."""
    value = text(name, default).lower()
    if value not in accepted:
        raise BadSetting(f"{name} is not known; it takes one of {', '.join(accepted)}.")
    return value


def origins(name: str) -> list[str]:
    """A comma-separated list of origins (`https://host`). Raises BadSetting."""
    entries = _entries(name)
    for entry in entries:
        parts = urlsplit(entry)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
            raise BadSetting(f"{name} has an entry that is no origin; it takes https://host and commas.")
    return [entry.rstrip("/") for entry in entries]


def figures(name: str, default: int, least: int = 1) -> dict[str, int]:
    """A number for everything (`*`) and others for names or patterns: `120, ollama:*=600`.

    Raises BadSetting.
    """
    found = {"*": default}
    for entry in _entries(name):
        pattern, _, figure = entry.rpartition("=")
        if not (figure.strip().isascii() and figure.strip().isdigit() and int(figure) >= least):
            raise BadSetting(f"{name} has an entry that makes no sense; it takes 120, ollama:*=600.")
        found[pattern.strip() or "*"] = int(figure)
    return found


def origin(name: str, default: str) -> str:
    """One origin (`https://host`), without a slash at its end. Raises BadSetting."""
    found = origins(name)
    if len(found) > 1:
        raise BadSetting(f"{name} has several entries; it takes one https://host.")
    return found[0] if found else default


def host() -> str:
    """HOST: the address or name `make run` listens on."""
    value = text("HOST", "127.0.0.1")
    if any(mark in value for mark in " /,'\"@") or "://" in value:
        raise BadSetting("HOST is not a host; it takes one address or name, such as 127.0.0.1 or 0.0.0.0.")
    return value.strip("[]")


def port() -> int:
    """PORT: where `make run` listens."""
    return whole_number("PORT", 8000, least=1, most=65535)


def openid() -> dict[str, Any] | None:
    """OIDC_…: the installation's provider of identities; None without OIDC_ISSUER. Raises BadSetting.

    OIDC_GROUPS: which of the provider's groups makes somebody what in OIDC_ORGANIZATION, the first that fits:
    `group=role` or `group=role:project+project`, comma-separated.
    """
    issuer = text("OIDC_ISSUER", "")
    if not issuer:
        return None
    found: dict[str, Any] = {
        "issuer": issuer,
        "rules": [_openid_rule(one) for one in names("OIDC_GROUPS", ())],
    }
    for name in ("client_id", "secret"):
        variable = "OIDC_CLIENT_ID" if name == "client_id" else "OIDC_CLIENT_SECRET"
        found[name] = text(variable, "")
        if not found[name]:
            raise BadSetting(f"{variable} is not set; OIDC_ISSUER takes it.")
    found["name"] = text("OIDC_NAME", "Single sign-on")
    found["scopes"] = text("OIDC_SCOPES", "openid profile email")
    found["groups_claim"] = text("OIDC_GROUPS_CLAIM", "groups")
    found["default_role"] = text("OIDC_DEFAULT_ROLE", "")
    found["domains"] = names("OIDC_DOMAINS", ())
    found["only"] = flag("OIDC_ONLY", False)
    found["makes_accounts"] = flag("OIDC_MAKES_ACCOUNTS", True)
    found["organization"] = text("OIDC_ORGANIZATION", "")
    if (found["rules"] or found["default_role"]) and not found["organization"]:
        raise BadSetting("OIDC_ORGANIZATION is not set; OIDC_GROUPS and OIDC_DEFAULT_ROLE take its slug.")
    return found


def _openid_rule(written: str) -> dict[str, Any]:
    group, equals, rest = written.rpartition("=")
    role, _, projects = rest.partition(":")
    if not (group and equals and role):
        raise BadSetting(
            "OIDC_GROUPS is no list of rules; it takes group=role or group=role:project+project."
        )
    return {"group": group, "role": role, "projects": projects.split("+") if projects else None}


def is_pooled() -> bool:
    """Whether DATABASE_URL leads to a pooler in transaction mode: DATABASE_DIRECT_URL names another way.

    Raises BadSetting for one without the other.
    """
    direct = text("DATABASE_DIRECT_URL", "")
    if direct and not text("DATABASE_URL", ""):
        raise BadSetting("DATABASE_DIRECT_URL is set without DATABASE_URL; it takes the pooler's there.")
    return bool(direct) and direct != text("DATABASE_URL", "")


def go_direct() -> bool:
    """Lead this process past the pooler, before it reads its settings; returns whether there is one.

    A command has a connection or two, and may need a session: a migration, an iterator over all runs.
    """
    pooled = is_pooled()
    if pooled:
        os.environ["DATABASE_URL"] = text("DATABASE_DIRECT_URL", "")
    return pooled


def database(
    url: str, default: dict[str, Any] | None = None, *, variable: str = "DATABASE_URL"
) -> dict[str, Any]:
    """Django's description of a PostgreSQL URL, whose own options go before those of `default`.

    There may be several hosts (`host:port,host:port`), of which libpq takes the first that fits; a socket
    folder may be the host, percent-encoded. Raises BadSetting for anything that is not PostgreSQL.
    """
    from environ import Env  # third-party; this module is also read before packages are in use

    accepted = "it takes postgresql://user:password@host:port/name"
    try:
        scheme = urlsplit(url).scheme
        described = dict(Env.db_url_config(url)) if scheme in ("postgres", "postgresql") else {}
    except ValueError:  # a bad port, or brackets that do not close
        described = {}
    if not described.get("NAME"):
        raise BadSetting(f"{variable} is not the URL of a PostgreSQL database; {accepted}.")
    described["HOST"] = unquote(str(described.get("HOST") or ""))
    if "," in described["HOST"]:
        described["HOST"] = described["HOST"].replace("[", "").replace("]", "")  # of IPv6; libpq takes none
        ports = [port for port in str(described["PORT"]).split(",") if port]
        if len(ports) not in (0, described["HOST"].count(",") + 1):
            raise BadSetting(f"{variable} names ports for some of its hosts only; give each its own.")
    default = default or {}
    options = default.get("OPTIONS", {}) | described.get("OPTIONS", {})
    return {**described, **default, **({"OPTIONS": options} if options else {})}


def email(url: str) -> dict[str, Any]:
    """Django's e-mail settings of an EMAIL_URL. Raises BadSetting."""
    from environ import Env

    try:
        if urlsplit(url).scheme not in Env.EMAIL_SCHEMES:
            raise ValueError
        return dict(Env.email_url_config(url))
    except (ValueError, KeyError):
        raise BadSetting(
            "EMAIL_URL is not an e-mail URL; it takes smtp+tls://user:password@host:587, consolemail:// "
            "or filemail:///folder."
        ) from None
