"""A real HTTP server that takes what is posted: a chat (ntfy, Mattermost), Slack's, a push service's."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from aiosmtpd.controller import Controller


class Receiver:
    """Keeps each request in `got`: (path, headers, body). Answers what `answers(number)` says, else 200."""

    def __init__(self, answers=None):
        self.got, self.answers = [], answers or (lambda number: 200)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status = outer.answers(len(outer.got))
                if status is None:  # refuses by hanging up
                    self.connection.close()
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.got.append((self.path, headers, body, status))
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def place(self):
        return f"127.0.0.1:{self.port}"

    def json(self, number=-1):
        return json.loads(self.got[number][2])

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class SmtpController(Controller):
    """aiosmtpd's, at a port that the system chooses."""

    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()
