"""A provider of identities in the tests' own process: it signs with a real key, and lies where told to.

It exchanges tokens as well (RFC 8693).
"""

import base64
import hashlib
import json
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from common.outbound import Fetched, OutboundError

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class IdentityServer:
    """Answers what `fetch` asks. `claims` are the person's; `lies` change tokens, metadata and userinfo.

    `access` and `refreshing` are the tokens that count. `refusal` is the error of every exchange, `exchanged`
    changes the claims of what is given, and `opaque` hides them. `forms` are what the token endpoint was
    sent.
    """

    def __init__(self, issuer: str = "https://id.example.org", client_id: str = "deputy") -> None:
        self.issuer, self.client_id = issuer, client_id
        self.claims: dict[str, Any] = {"sub": "s-1"}
        self.token: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.userinfo: dict[str, Any] | None = None
        self.key, self.headers = KEY, {"kid": "one"}
        self.algorithm = "RS256"
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.access: set[str] = set()
        self.refreshing: set[str] = set()
        self.seconds, self.refusal, self.opaque, self.down = 3600, "", False, False
        self.exchanged: dict[str, Any] = {}
        self.forms: list[dict[str, str]] = []
        self.revoked: list[str] = []
        self.given = 0

    def authorize(self, address: str, **said: str) -> dict[str, str]:
        """The person agrees at the address they were sent to: what comes back with them."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], **said}

    def fetch(self, address: str, **how: Any) -> Fetched:
        self.asked.append(address)
        if not address.startswith(self.issuer) or self.down:
            raise OutboundError("CONNECTION", "another host")
        answers = {
            "/.well-known/openid-configuration": self._configuration,
            "/token": self._token,
            "/keys": self._keys,
            "/me": self._userinfo,
            "/introspect": self._introspect,
            "/revoke": self._revoke,
        }
        status, found = answers[address.removeprefix(self.issuer)](how)
        return Fetched(address, status, {}, json.dumps(found), 0, False, ())

    def _configuration(self, how: Any) -> tuple[int, Any]:
        return 200, {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/me",
            **self.metadata,
        }

    def _keys(self, how: Any) -> tuple[int, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return 200, {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def _userinfo(self, how: Any) -> tuple[int, Any]:
        return 200, self.claims if self.userinfo is None else self.userinfo

    def _token(self, how: Any) -> tuple[int, Any]:
        told = {name: values[0] for name, values in parse_qs(how["content"]).items()}
        self.forms.append(told)
        grant = told["grant_type"].rpartition(":")[2]
        if grant == "client_credentials":
            return 200, {"access_token": "deputys-own", "token_type": "Bearer"}
        if grant == "token-exchange":
            return self._exchange(told)
        if grant == "refresh_token":
            if told["refresh_token"] not in self.refreshing:
                return 400, {"error": "invalid_grant"}
            self.refreshing.discard(told["refresh_token"])
            return 200, self._given(offline=True)
        asked = self.codes.pop(told.get("code", ""), None)
        if asked is None or self._challenge(told.get("code_verifier", "")) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        offline = "offline_access" in asked.get("scope", "").split()
        return 200, {**self._given(offline), "id_token": self.id_token(asked["nonce"])}

    def _given(self, offline: bool) -> dict[str, Any]:
        self.given += 1
        access, refresh = f"subject-{self.given}", f"refresh-{self.given}"
        self.access.add(access)
        found = {"access_token": access, "token_type": "Bearer", "expires_in": self.seconds}
        if offline:
            self.refreshing.add(refresh)
        return {**found, "refresh_token": refresh} if offline else found

    def _exchange(self, told: dict[str, str]) -> tuple[int, Any]:
        if self.refusal or told["subject_token"] not in self.access:
            return 400, {"error": self.refusal or "invalid_grant", "error_description": "secret words"}
        token = (
            "opaque"
            if self.opaque
            else jwt.encode(self._about(told), self.key, "RS256", headers=self.headers)
        )
        issued = "urn:ietf:params:oauth:token-type:access_token"
        return 200, {"access_token": token, "token_type": "Bearer", "issued_token_type": issued}

    def _about(self, told: dict[str, str]) -> dict[str, Any]:
        now, audience = int(time.time()), told.get("audience") or told.get("resource")
        claims = {"iss": self.issuer, "sub": "s-1", "aud": audience, "iat": now, "exp": now + 300}
        if told.get("actor_token") == "deputys-own":
            claims["act"] = {"sub": self.client_id}
        claims |= {"n": str(len(self.forms)), **self.exchanged}
        return {name: value for name, value in claims.items() if value is not None}

    def _introspect(self, how: Any) -> tuple[int, Any]:
        return 200, {"active": True, **self._about(self.forms[-1])}

    def _revoke(self, how: Any) -> tuple[int, Any]:
        self.revoked += parse_qs(how["content"])["token"]
        return 200, {}

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": self.client_id, "iat": now, "exp": now + 300, "nonce": nonce}
        claims = {**claims, **self.claims, **self.token}
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(kept, self.key, self.algorithm, headers=self.headers)

    def logout_token(self, **claims: Any) -> str:
        now = int(time.time())
        event = {"http://schemas.openid.net/event/backchannel-logout": {}}
        said = {
            "iss": self.issuer,
            "aud": self.client_id,
            "iat": now,
            "exp": now + 60,
            "events": event,
            "jti": "1",
        }
        return jwt.encode({**said, **claims}, self.key, "RS256", headers=self.headers)

    @staticmethod
    def _challenge(verifier: str) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
