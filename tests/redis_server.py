"""A Redis of the tests' own, on a socket in a folder of its own."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
import redis


class RedisServer:
    """Keeps nothing on disk: what is killed has lost everything."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("no redis-server here; install the package redis-server")
        self.program = program
        self.folder = Path(tempfile.mkdtemp(prefix="deputy-redis-"))
        self.url = f"unix://{self.folder}/redis.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        place = {"--port": "0", "--unixsocket": f"{self.folder}/redis.sock", "--dir": str(self.folder)}
        options = {**place, "--save": ""}
        words = [word for option in options.items() for word in option]
        self.process = subprocess.Popen([self.program, *words], stdout=subprocess.DEVNULL)
        self.client().ping()

    def client(self) -> redis.Redis:
        """Waits for the server to answer."""
        retry = redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), 200)
        return redis.from_url(self.url, retry=retry, retry_on_error=[redis.ConnectionError])

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder)
