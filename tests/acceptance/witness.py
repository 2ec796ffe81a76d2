"""What really happened outside: an HTTP server that counts effects, and a mail server that keeps mail."""

import socketserver
import threading
from collections import Counter
from dataclasses import dataclass
from email import message_from_string, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


class Witness:
    """Takes one POST an effect; `effects` are (name, run, key) in the order of their coming, `by` are (path,
    run): the path is of the witness's address as the tool knows it.
    """

    def __init__(self) -> None:
        self.effects: list[tuple[str, str, str]] = []
        self.by: set[tuple[str, str]] = set()
        witness = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                witness.effects.append((told["name"][0], told["run"][0], told["key"][0]))
                witness.by.add((self.path.strip("/"), told["run"][0]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def count(self, run_ids: list[str]) -> Counter[str]:
        """How often each effect happened in these runs."""
        return Counter(name for name, run_id, _ in self.effects if run_id in run_ids)

    def keys(self, run_ids: list[str], name: str) -> list[str]:
        return [key for told, run_id, key in self.effects if told == name and run_id in run_ids]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@dataclass(frozen=True)
class Mail:
    """One that arrived: to whom the envelope sent it, and its text."""

    recipients: tuple[str, ...]
    text: str

    @property
    def message(self) -> EmailMessage:
        return message_from_string(self.text, _class=EmailMessage, policy=policy.default)


class MailSink:
    """As much of SMTP as it takes to be sent mail; on a free port, where none is named."""

    def __init__(self, port: int = 0) -> None:
        self.mails: list[Mail] = []
        sink = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 sink\r\n")
                recipients: list[str] = []
                while line := self.rfile.readline():
                    word = line[:4].upper()
                    if word == b"RCPT":
                        recipients.append(line.decode().partition("<")[2].partition(">")[0])
                    if word == b"DATA":
                        self.wfile.write(b"354 go on\r\n")
                        text = b""
                        while (line := self.rfile.readline()) != b".\r\n":
                            text += line
                        sink.mails.append(Mail(tuple(recipients), text.decode()))
                    self.wfile.write(b"221 bye\r\n" if word == b"QUIT" else b"250 ok\r\n")
                    if word == b"QUIT":
                        return

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", port), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
