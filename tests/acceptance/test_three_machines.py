"""Three machines with PostgreSQL under Patroni: who leads is lost, and nothing that was acknowledged is."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launch.home import PROJECT

WALK = PROJECT / "deploy" / "three-machines" / "walk.py"
NEEDED = ("patroni", "etcd", "ip", "setpriv")
POSTGRES = Path("/usr/lib/postgresql/15/bin/postgres")
OURS = ("PATH", "HOME", "LANG")  # of the environment: the walk has settings of its own
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces take root"),
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)) or not POSTGRES.exists(),
        reason="Patroni, etcd or PostgreSQL is not here",
    ),
]


def test_the_leaders_machine_is_killed_under_load_and_work_goes_on_by_itself():
    environment = {name: os.environ[name] for name in OURS if name in os.environ}
    done = subprocess.run(
        [sys.executable, WALK, "--short"], cwd=PROJECT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["synchronous"]
    assert figures["killed"]["next"] != figures["killed"]["leader"]
    assert figures["asked"] > 20
    assert (figures["missing"], figures["twice"], figures["not_ended"]) == (0, 0, 0)
    assert figures["not_listed"] == 0 and figures["lists_of_standbys"] > 0
