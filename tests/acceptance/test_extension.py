"""A package of somebody else's beside Deputy: its tool and its model work in the processes of `make run`."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from launch import postgres
from launch.home import PROJECT
from tests.extension import wheel
from tests.integration.test_launch_run import HIDDEN, Run
from tests.ports import free_port

GOOD = {
    "deputy.tools": {"weather": "deputy_weather.tools"},
    "deputy.providers": {"weather": "deputy_weather.provider:WeatherModel"},
}


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A fresh environment with Deputy's packages in reach, and nothing else; returns its interpreter."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
    Path(site, "deputy.pth").write_text(sysconfig.get_path("purelib"))
    return str(python)


def install(python, folder, entry_points):
    built = wheel.build(folder, entry_points)
    command = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
        built,
    ]
    subprocess.run(command, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})


@pytest.fixture
def home():
    folder = postgres.temporary_home()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def environment(home, **more):
    kept = {key: value for key, value in os.environ.items() if key not in HIDDEN}
    return kept | {"DEPUTY_HOME": str(home), "DEMO": "yes", **more}


@pytest.mark.slow
def test_a_package_brings_a_tool_and_a_model_that_the_workers_use(python, tmp_path, home, monkeypatch):
    install(python, tmp_path, GOOD)
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("DEPUTY_MODEL", "weather:sky")
    monkeypatch.setenv("DEPUTY_APPS", "deputy_weather")
    run = Run(home, free_port(), demo="yes")
    try:
        run.wait_for("http://")
        asked = [python, "manage.py", "ask", "--as", "member", "What is the weather in Lisbon"]
        said = subprocess.run(
            asked,
            cwd=PROJECT,
            env=environment(home, DEPUTY_MODEL="weather:sky", DEPUTY_APPS="deputy_weather"),
            capture_output=True,
            text=True,
        )
        assert "The sky over Lisbon is clear." in said.stdout, said
        assert "weather_look" in said.stdout + said.stderr
        demo = (home / "demo.txt").read_text()
        token = re.search(r"dpt_[\w-]+", demo).group()
        assert run.get("/apps/weather/stations/", token) == 200
        assert run.get("/admin/weather/station/") == 200  # by way of the sign-in page
    finally:
        run.end()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("deputy_weather.bad", "'weather_make' has the risk 'tremendous'; it is one of low, medium, high"),
        pytest.param("deputy_weather.nowhere", "has no attribute 'nowhere'", marks=pytest.mark.slow),
    ],
)
def test_a_bad_tool_stops_the_start_with_one_line(python, tmp_path, home, target, why):
    install(python, tmp_path, {"deputy.tools": {"weather": target}})
    check = [python, "manage.py", "check"]
    said = subprocess.run(check, cwd=PROJECT, env=environment(home), capture_output=True, text=True)
    assert said.returncode != 0
    (line,) = said.stderr.strip().splitlines()
    assert f"the package deputy-weather brings {target}, and " in line
    assert why in line
