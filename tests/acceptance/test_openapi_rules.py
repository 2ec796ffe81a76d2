"""Spectral's default rules find no error in the OpenAPI document."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).parents[1] / "data" / "openapi.yaml"
PACKAGE = "@stoplight/spectral-cli@6"


def test_spectral_finds_no_error(tmp_path):
    named, npx = os.environ.get("SPECTRAL"), shutil.which("npx")
    if not named and npx is None:
        pytest.skip("Spectral needs npx, or SPECTRAL")
    rules, found = tmp_path / "rules.yaml", tmp_path / "found.json"
    rules.write_text('extends: ["spectral:oas"]\n')
    command = named.split() if named else [npx, "--yes", f"--package={PACKAGE}", "spectral"]
    lint = ["lint", str(DOCUMENT), "-r", str(rules), "-f", "json", "-o", str(found)]
    done = subprocess.run([*command, *lint], capture_output=True, text=True, timeout=600)

    assert found.exists(), done.stderr
    assert {each["code"] for each in json.loads(found.read_text())} <= {"path-keys-no-trailing-slash"}
