"""The image, in the containers that compose.yaml describes: they start, serve, work and stop in order.

Needs podman and the image of `make image`; POSTGRES_IMAGE and REDIS_IMAGE name images in the place of those
in compose.yaml (tests/acceptance/images). The test reads compose.yaml itself, since the podman of Debian 12
knows no conditions for what a service waits for.
"""

import json
import os
import re
import shutil
import subprocess
import uuid

import pytest
import yaml

from launch.home import PROJECT
from tests.acceptance.house import until

ENVIRONMENT = {
    "POSTGRES_PASSWORD": "a-password",
    "SECRET_KEY": "0123456789" * 4,
    "POSTGRES_IMAGE": os.environ.get("POSTGRES_IMAGE", ""),
    "REDIS_IMAGE": os.environ.get("REDIS_IMAGE", ""),
}
ASK = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000{}', timeout=4).status)"


def podman(*words, check=True):
    done = subprocess.run(["podman", *words], capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr[-2000:]
    return done


def has(image):
    return (
        shutil.which("podman") is not None and podman("image", "exists", image, check=False).returncode == 0
    )


def filled(text):
    """The variables of compose.yaml as a compose program fills them in."""
    return re.sub(
        r"\$\{(\w+)(?::[-?]([^}]*))?\}", lambda found: ENVIRONMENT.get(found[1]) or found[2] or "", text
    )


class Containers:
    """Services of compose.yaml as containers, in a pod's stead on a network of their own."""

    def __init__(self):
        self.services = yaml.safe_load(filled((PROJECT / "compose.yaml").read_text()))["services"]
        self.network = f"deputy-{uuid.uuid4().hex[:8]}"
        self.started = []
        podman("network", "create", self.network)

    def run(self, service, wait=False):
        """Start it with all that compose.yaml says of it; `wait` for its end."""
        told = self.services[service]
        words = ["run", "--name", self.name(service), "--network", self.network, "--network-alias", service]
        words += [] if wait else ["--detach"]
        words += (
            [
                part
                for name, value in told["environment"].items()
                for part in ("--env", f"{name}={value or ''}")
            ]
            if "environment" in told
            else []
        )
        words += ["--read-only"] if told.get("read_only") else []
        words += [part for path in told.get("tmpfs", []) for part in ("--tmpfs", f"{path}:mode=1777")]
        words += [part for name in told.get("cap_drop", []) for part in ("--cap-drop", name)]
        words += [
            part
            for name in told.get("security_opt", [])
            for part in ("--security-opt", name.replace(":true", ""))
        ]
        self.started.append(service)
        return podman(*words, told["image"], *told.get("command", []))

    def name(self, service):
        return f"{self.network}-{service}"

    def inside(self, service, *command, check=True):
        return podman("exec", self.name(service), *command, check=check)

    def stop(self, service):
        """Exit status after SIGTERM; 137 where it had to be killed."""
        seconds = self.services[service].get("stop_grace_period", "10s").rstrip("s")
        podman("stop", "--time", seconds, self.name(service))
        return int(podman("inspect", "--format", "{{.State.ExitCode}}", self.name(service)).stdout)

    def remove(self):
        for service in reversed(self.started):
            podman("rm", "--force", "--volumes", self.name(service), check=False)
        podman("network", "rm", "--force", self.network, check=False)


@pytest.fixture
def containers():
    missing = [
        name
        for name in ("deputy", ENVIRONMENT["POSTGRES_IMAGE"], ENVIRONMENT["REDIS_IMAGE"])
        if not name or not has(name)
    ]
    if missing:
        pytest.skip("wants podman, the image of `make image`, POSTGRES_IMAGE and REDIS_IMAGE")
    made = Containers()
    yield made
    made.remove()


@pytest.mark.slow
def test_the_containers_of_the_compose_file_do_what_deputy_does(containers):
    for service in ("postgres", "redis"):
        containers.run(service)
    until(lambda: containers.inside("postgres", "pg_isready", "-U", "deputy", check=False).returncode == 0)
    until(lambda: containers.inside("redis", "redis-cli", "ping", check=False).returncode == 0)
    containers.run("migrate", wait=True)
    for service in ("web-1", "web-2", "cluster-1", "cluster-2"):
        containers.run(service)

    for web in ("web-1", "web-2"):
        until(
            lambda web=web: (
                containers.inside(web, "python", "-c", ASK.format("/readyz?all"), check=False).stdout
                == "200\n"
            )
        )
        assert podman("healthcheck", "run", containers.name(web)).returncode == 0
    for service in ("web-1", "cluster-1"):
        assert containers.inside(service, "id", "-u").stdout == "10001\n"
        refused = containers.inside(service, "touch", "/app/x", check=False)
        assert refused.returncode and "Read-only file system" in refused.stderr
        assert "CapEff:\t0000000000000000" in containers.inside(service, "cat", "/proc/self/status").stdout

    demo = json.loads(containers.inside("web-1", "python", "manage.py", "demo", "--json").stdout)
    assert demo["project"]
    said = containers.inside(
        "web-2", "python", "manage.py", "ask", "What do our competitors charge?", "--as", "member", "--json"
    )
    assert '"completed"' in said.stdout

    assert podman("healthcheck", "run", containers.name("web-1")).returncode == 0
    assert [containers.stop(service) for service in ("cluster-1", "cluster-2", "web-1")] == [0, 0, 0]
