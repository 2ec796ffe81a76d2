"""An OAuth 2.1 authorization server over real HTTP, in a thread of the tests; it lies where told to."""

import base64
import hashlib
import json
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit


class AuthorizationServer:
    """Codes with PKCE, refresh tokens that are good for one use, revocation.

    `user` agrees at the pages; `tokens` are the access tokens that count, with whose they are, told to
    `on_change`. `metadata` and `answer` are put over what it says of itself and at its token endpoint.
    """

    def __init__(self, on_change: Callable[[dict[str, str]], None] = lambda tokens: None) -> None:
        self.on_change = on_change
        self.user, self.seconds, self.iss = "ada", 3600, True
        self.metadata: dict[str, Any] = {}
        self.answer: dict[str, Any] = {}
        self.clients: dict[str, str] = {"deputy": ""}
        self.codes: dict[str, dict[str, str]] = {}
        self.refreshing: dict[str, str] = {}
        self.tokens: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, str], str]] = []  # path, form, Authorization
        self.down = False
        self.on_token: Callable[[], None] = lambda: None
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = self.server.server_address[1]
        self.issuer = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def agree(self, address: str) -> str:
        """The person agrees at the address they were sent to; where they are sent back."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        code = secrets.token_urlsafe(8)
        self.codes[code] = {**asked, "user": self.user}
        told = {"code": code, "state": asked["state"], **({"iss": self.issuer} if self.iss else {})}
        return f"{asked['redirect_uri']}?{urlencode(told)}"

    def granted(self) -> list[dict[str, str]]:
        """The forms that its token endpoint was sent."""
        return [form for path, form, _ in self.asked if path == "/token"]

    def describe(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            **self.metadata,
        }

    def answer_to(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        if self.down:
            return 503, {}
        if path == "/.well-known/oauth-authorization-server":
            return 200, self.describe()
        if path == "/revoke":
            self.revoke(form.get("token", ""))
            return 200, {}
        if path != "/token":
            return 404, {}
        self.on_token()
        with self.lock:
            return self._token(form)

    def revoke(self, token: str) -> None:
        """The grant that the token is of ends."""
        user = self.refreshing.pop(token, None) or self.tokens.get(token)
        self.tokens = {access: whose for access, whose in self.tokens.items() if whose != user}
        self.on_change(self.tokens)

    def _token(self, form: dict[str, str]) -> tuple[int, Any]:
        if form.get("grant_type") == "refresh_token":
            user = self.refreshing.pop(form["refresh_token"], None)
        else:
            asked = self.codes.pop(form.get("code", ""), None)
            fits = asked and self._fits(asked, form)
            user = asked["user"] if asked and fits else None
        if user is None:
            return 400, {"error": "invalid_grant", "error_description": "<b>secret words</b>"}
        access, refresh = secrets.token_urlsafe(8), secrets.token_urlsafe(8)
        self.tokens[access], self.refreshing[refresh] = user, user
        self.on_change(self.tokens)
        usual = {"access_token": access, "token_type": "Bearer", "expires_in": self.seconds}
        found = {**usual, "refresh_token": refresh, **self.answer}
        return 200, {name: value for name, value in found.items() if value is not None}

    def _fits(self, asked: dict[str, str], form: dict[str, str]) -> bool:
        verifier = form.get("code_verifier", "")
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        same = all(asked.get(name) == form.get(name) for name in ("redirect_uri", "resource", "client_id"))
        return same and asked.get("code_challenge") == digest and asked["code_challenge_method"] == "S256"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        whole = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._say(whole.answer_to(urlsplit(self.path).path, {}))

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(text).items()}
                whole.asked.append((self.path, form, self.headers.get("Authorization", "")))
                self._say(whole.answer_to(self.path, form))

            def _say(self, told: tuple[int, Any]) -> None:
                status, found = told
                body = json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *about: Any) -> None:
                pass

        return Handler
