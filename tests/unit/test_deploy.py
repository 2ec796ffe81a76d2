"""The files for deploying say what the code and its documentation say."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPUTY = ("migrate", "web-1", "web-2", "cluster-1", "cluster-2")
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]


def test_the_compose_file_has_two_web_servers_and_two_clusters_on_one_database(services):
    assert set(services) == {"postgres", "redis", *DEPUTY}
    assert len({services[name]["environment"]["DATABASE_URL"] for name in DEPUTY}) == 1
    assert len({services[name]["environment"]["SECRET_KEY"] for name in DEPUTY}) == 1


def test_the_database_is_migrated_once_before_anything_starts(services):
    assert services["migrate"]["restart"] == "no"
    for name in set(DEPUTY) - {"migrate"}:
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_no_secret_has_a_default(services):
    for name in ("DATABASE_URL", "SECRET_KEY"):
        assert ":?" in services["web-1"]["environment"][name]


def test_every_variable_of_the_compose_file_is_explained(services):
    explained = set(re.findall(r"`([A-Z_]+)`", (ROOT / "docs" / "operating.md").read_text()))
    assert set(services["web-1"]["environment"]) <= explained


def test_nothing_runs_as_root():
    last_stage = (ROOT / "Containerfile").read_text().rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!root|0)", last_stage, re.MULTILINE)
    assert UNITS
    for unit in UNITS:
        assert parsed(unit)["Service"]["User"] == "deputy"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_stops_its_main_process_first(unit):
    """SIGTERM to the whole group would end workers in the middle of a step."""
    assert parsed(unit)["Service"]["KillMode"] == "mixed"
    assert int(parsed(unit)["Service"]["TimeoutStopSec"]) >= 15


def parsed(unit):
    found = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    found.optionxform = str
    found.read(unit)
    return found


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_a_unit_for_well_confined(unit):
    asked = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
    found = subprocess.run(asked, capture_output=True, text=True)

    assert found.returncode == 0, found.stdout[-300:]
    assert "OK" in found.stdout.splitlines()[-1]


def test_the_image_is_made_of_what_the_lock_file_names():
    text = (ROOT / "Containerfile").read_text()
    assert "pip install --require-hashes -r" in text
    assert len(re.findall(r"^FROM \$\{PYTHON_IMAGE\}", text, re.MULTILINE)) == 2  # can be named by its digest
