"""Deputy as a relying party of OpenID Connect: the code flow with PKCE, state and nonce.

OpenID Connect Core 1.0 (3.1), Discovery 1.0, RFC 7636, RFC 9207. Every answer is checked: an ID token's
signature also where it came over TLS, the issuer in the metadata, in the answer and in the token.
"""

import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import jwt
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from common.canonical import NotJson, normalise
from common.outbound import OutboundError, fetch
from common.sealed import Unreadable
from groups.sign_in import kept
from groups.sign_in.providers import Provider

STATES = "deputy_oidc"  # the session's key: what has been begun and not finished
MOST = 5  # flows begun side by side in one browser
STATE_SECONDS = 600
LEEWAY = 60  # seconds that two clocks may differ
KEPT_SECONDS = 300  # a provider's configuration and keys
ANSWER_BYTES = 500_000  # of what a provider says of a person
DOCUMENT_BYTES = 100_000  # of its configuration or its keys, which are kept
ANEW_SECONDS = 10  # within which even an unknown key does not make Deputy ask again
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
WELL_KNOWN = "/.well-known/openid-configuration"
BACKCHANNEL = "http://schemas.openid.net/event/backchannel-logout"

_kept: dict[str, tuple[float, str]] = {}  # as text: what was read of it takes twenty times the memory


class Refused(Exception):
    """A sign-in that does not count. `reason` is one of a few words for the log, without anything secret."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Begun:
    """What the browser's session kept of a flow. `purpose`: login, connect or confirm."""

    provider: str
    nonce: str
    verifier: str
    after: str
    purpose: str
    user: int | None
    at: float


def begin(request: HttpRequest, provider: Provider, purpose: str, after: str) -> str:
    """The address at the provider to send the browser to. Raises Refused."""
    described = metadata(provider)
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    flows = dict(list(_flows(request).items())[-(MOST - 1) :])
    flows[state] = [provider.pk, nonce, verifier, after, purpose, request.user.pk, time.time()]
    request.session[STATES] = flows
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": callback_address(provider),
        "scope": kept.scopes(provider, described) if purpose == "login" else provider.scopes or "openid",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    if purpose == "confirm":
        asked |= {"prompt": "login", "max_age": "0"}
    joint = "&" if "?" in described["authorization_endpoint"] else "?"
    return f"{described['authorization_endpoint']}{joint}{urlencode(asked)}"


def finish(request: HttpRequest, provider: Provider) -> tuple[Begun, dict[str, Any], dict[str, Any]]:
    """What was begun, the provider's claims about the person, and the tokens it gave. Raises Refused.

    A state works once, in the browser that got it and for the provider it was made for.
    """
    flows = _flows(request)
    kept = flows.pop(request.GET.get("state", ""), None)
    request.session[STATES] = flows
    if kept is None:
        raise Refused("unknown or used state")
    begun = Begun(*kept)
    if begun.provider != provider.pk:
        raise Refused("answer of another provider")
    if time.time() - begun.at > STATE_SECONDS:
        raise Refused("expired state")
    described = metadata(provider)
    _check_issuer(request, provider, described)
    if "error" in request.GET:
        raise Refused("the provider refused")
    if not (code := request.GET.get("code", "")):
        raise Refused("no code")
    tokens = _redeem(provider, described, code, begun.verifier)
    claims = id_claims(provider, described, str(tokens.get("id_token", "")), begun.nonce)
    return begun, _with_userinfo(provider, described, claims, tokens), tokens


def _flows(request: HttpRequest) -> dict[str, list[Any]]:
    found = request.session.get(STATES)
    return dict(found) if isinstance(found, dict) else {}


def _check_issuer(request: HttpRequest, provider: Provider, described: dict[str, Any]) -> None:
    """RFC 9207: an answer that names another issuer, or none where it has to, was mixed up."""
    told = request.GET.get("iss")
    if told is None and not described.get("authorization_response_iss_parameter_supported"):
        return
    if told != provider.issuer:
        raise Refused("answer of another issuer")


def callback_address(provider: Provider) -> str:
    return settings.PUBLIC_URL.rstrip("/") + reverse("oidc_callback", args=[provider.pk])


def metadata(provider: Provider) -> dict[str, Any]:
    """The provider's configuration. Raises Refused where it is not there, or not this issuer's."""
    found = _document(provider.issuer.rstrip("/") + WELL_KNOWN)
    if found.get("issuer") != provider.issuer:
        raise Refused("the configuration is of another issuer")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        address = found.get(name)
        if not isinstance(address, str) or not address.startswith(("https://", "http://")):
            raise Refused(f"the configuration has no {name}")
        if address.startswith("http://") and not provider.issuer.startswith("http://"):
            raise Refused(f"the {name} is not https")
    return found


def _document(address: str, anew: bool = False) -> dict[str, Any]:
    kept = _kept.get(address)
    if kept and time.monotonic() - kept[0] < (ANEW_SECONDS if anew else KEPT_SECONDS):
        return dict(json.loads(kept[1]))
    found = _asked(address, DOCUMENT_BYTES)
    if len(_kept) > 500:
        _kept.clear()
    _kept[address] = (time.monotonic(), json.dumps(found))
    return found


def _asked(address: str, most: int = ANSWER_BYTES, **how: Any) -> dict[str, Any]:
    """A JSON object from the provider, by the guard of everything that leaves Deputy."""
    try:
        answer = fetch(
            address,
            max_redirects=0,
            max_bytes=most,
            allow_private=frozenset(settings.IDENTITY_ALLOW),
            **how,
        )
        found = normalise(json.loads(answer.text))
    except OutboundError as error:
        raise Refused(f"the provider cannot be asked: {error.code}") from None
    except (ValueError, RecursionError):
        raise Refused("the provider's answer is no JSON") from None
    if answer.status != 200 or not isinstance(found, dict):
        raise Refused(f"the provider answered {answer.status}")
    return found


def _redeem(provider: Provider, described: dict[str, Any], code: str, verifier: str) -> dict[str, Any]:
    told = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": callback_address(provider),
        "code_verifier": verifier,
        "client_id": provider.client_id,
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    try:
        secret = provider.secret
    except Unreadable:
        raise Refused("the client secret cannot be read") from None
    if secret and not secret_in_body(described):
        pair = f"{quote(provider.client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    elif secret:
        told["client_secret"] = secret
    return _asked(described["token_endpoint"], method="POST", headers=headers, content=urlencode(told))


def secret_in_body(described: dict[str, Any]) -> bool:
    """Whether the provider wants the client secret among the form's fields."""
    methods = described.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    return isinstance(methods, list) and "client_secret_basic" not in methods


def id_claims(provider: Provider, described: dict[str, Any], token: str, nonce: str) -> dict[str, Any]:
    """The claims of an ID token that is this provider's, for us, of now and of this flow. Raises Refused."""
    claims = verified(provider, described, token)
    if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise Refused("wrong nonce")
    return claims


def verified(provider: Provider, described: dict[str, Any], token: str) -> dict[str, Any]:
    """The claims of a token that the provider signed for us. Raises Refused."""
    claims = signed(provider, described, token, provider.client_id)
    if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and claims.get("azp") != provider.client_id:
        raise Refused("token for somebody else")
    return claims


def signed(
    provider: Provider, described: dict[str, Any], token: str, audience: str | None = None
) -> dict[str, Any]:
    """The claims of a token of now that the provider signed, for the audience or whomever it names. Raises
    Refused.
    """
    try:
        found = jwt.decode(
            token,
            _key(described["jwks_uri"], token),
            algorithms=ALGORITHMS,
            audience=audience,
            issuer=provider.issuer,
            leeway=LEEWAY,
            options={"require": ["iss", "aud", "iat"], "verify_aud": audience is not None},
        )
    except jwt.ExpiredSignatureError:
        raise Refused("expired token") from None
    except jwt.InvalidIssuerError:
        raise Refused("token of another issuer") from None
    except jwt.InvalidAudienceError:
        raise Refused("token for somebody else") from None
    except jwt.ImmatureSignatureError:
        raise Refused("token of the future") from None
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
        raise Refused("forged or broken token") from None
    try:
        return dict(normalise(found))
    except NotJson:
        raise Refused("a token that cannot be kept") from None


def _key(address: str, token: str) -> Any:
    """The provider's key that the token names; asked anew once where it is unknown."""
    name = jwt.get_unverified_header(token).get("kid")
    for anew in (False, True):
        keys = [one for one in jwt.PyJWKSet.from_dict(_document(address, anew)).keys if _signs(one)]
        named = [one for one in keys if one.key_id == name] if name else keys
        if len(named) == 1:
            return named[0]
    raise Refused("signed by a key that is not the provider's")


def _signs(key: Any) -> bool:
    return key.public_key_use in (None, "sig") and key.key_type in ("RSA", "EC", "OKP")


def _with_userinfo(
    provider: Provider, described: dict[str, Any], claims: dict[str, Any], tokens: dict[str, Any]
) -> dict[str, Any]:
    """The claims, and what the token left out of them. Userinfo about somebody else is refused."""
    if not str(claims.get("sub") or "") or len(str(claims["sub"])) > 191:
        raise Refused("no subject")
    if "exp" not in claims:
        raise Refused("token without an end")
    address, access = described.get("userinfo_endpoint"), tokens.get("access_token")
    wanted = {"email", provider.groups_claim} - {""} - set(claims)
    if not wanted or not isinstance(address, str) or not isinstance(access, str):
        return claims
    more = _asked(address, headers={"Authorization": f"Bearer {access}", "Accept": "application/json"})
    if more.get("sub") != claims["sub"]:
        raise Refused("userinfo of somebody else")
    return {**more, **claims}


def logout_claims(provider: Provider, token: str) -> dict[str, Any]:
    """Of a logout token (OpenID Connect Back-Channel Logout 1.0, 2.6). Raises Refused."""
    claims = verified(provider, metadata(provider), token)
    events = claims.get("events")
    if not isinstance(events, dict) or BACKCHANNEL not in events or "nonce" in claims:
        raise Refused("no logout token")
    if abs(time.time() - float(claims["iat"])) > STATE_SECONDS or not (
        claims.get("sub") or claims.get("sid")
    ):
        raise Refused("no logout token of now")
    return claims
