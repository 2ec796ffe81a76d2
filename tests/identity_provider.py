"""A provider of identities in the tests' own process: it signs with a real key, and lies where told to."""

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
    """Answers what `fetch` asks. `claims` are the person's; `lies` change tokens, metadata and userinfo."""

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

    def authorize(self, address: str, **said: str) -> dict[str, str]:
        """The person agrees at the address they were sent to: what comes back with them."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], **said}

    def fetch(self, address: str, **how: Any) -> Fetched:
        self.asked.append(address)
        if not address.startswith(self.issuer):
            raise OutboundError("CONNECTION", "another host")
        answers = {
            "/.well-known/openid-configuration": self._configuration,
            "/token": self._token,
            "/keys": self._keys,
            "/me": self._userinfo,
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
        asked = self.codes.pop(told.get("code", ""), None)
        if asked is None or self._challenge(told.get("code_verifier", "")) != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "at", "token_type": "Bearer", "id_token": self.id_token(asked["nonce"])}

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
