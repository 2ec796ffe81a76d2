"""Something in the network between Deputy and PostgreSQL, that may stop forwarding and close nothing."""

import socket
import threading
from pathlib import Path
from urllib.parse import quote

BYTES = 65_536


class Proxy:
    """Listens on a port of this machine and forwards to a server's Unix socket while it is told to."""

    def __init__(self, target: Path) -> None:
        self.target = str(target)
        self.open = threading.Event()  # for sessions that begin now
        self.open.set()
        self.sessions: list[Session] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, user: str, database: str) -> str:
        return f"postgresql://{quote(user)}@127.0.0.1:{self.port}/{database}"

    def fall_silent(self, *, new: bool) -> int:
        """Forward nothing more of the sessions there are, and, with `new`, of none to come; how many."""
        if new:
            self.open.clear()
        silenced = [session for session in self.sessions if session.flows.is_set()]
        for session in silenced:
            session.flows.clear()
        return len(silenced)

    def forward_again(self) -> None:
        """For sessions to come; those that fell silent stay so."""
        self.open.set()

    def close(self) -> None:
        self.listener.close()
        for session in self.sessions:
            session.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.sessions.append(Session(client, self))


class Session:
    """One connection, both ways."""

    def __init__(self, client: socket.socket, proxy: Proxy) -> None:
        self.flows = threading.Event()
        if proxy.open.is_set():
            self.flows.set()
        self.client, self.server = client, socket.socket(socket.AF_UNIX)
        self.server.connect(proxy.target)
        for here, there in ((client, self.server), (self.server, client)):
            threading.Thread(target=self._carry, args=(here, there), daemon=True).start()

    def _carry(self, here: socket.socket, there: socket.socket) -> None:
        try:
            while said := here.recv(BYTES):
                if self.flows.is_set():  # what comes later is received, and goes no further
                    there.sendall(said)
        except OSError:
            pass
        if self.flows.is_set():
            self.close()

    def close(self) -> None:
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
            end.close()
