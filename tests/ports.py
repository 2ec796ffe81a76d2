"""Ports for servers that tests and measurements start in processes of their own."""

import socket


def free_port() -> int:
    """One that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
