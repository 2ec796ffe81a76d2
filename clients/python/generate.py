"""Makes `deputy_client.rest` from Deputy's OpenAPI document: by hand, and whenever a wheel is built.

What is made (460 files) is not kept in git: the document is.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
REST = HERE / "src" / "deputy_client" / "rest"
DOCUMENTS = (HERE / "openapi.yaml", HERE.parents[1] / "tests" / "data" / "openapi.yaml")
CONFIG = {"package_name_override": "rest", "docstrings_on_attributes": True, "post_hooks": []}


def document() -> Path:
    """Where the document is: beside this file in what is published, else in Deputy's repository."""
    return next(path for path in DOCUMENTS if path.exists())


def generate(to: Path = REST) -> Path:
    """Make the package anew. Raises CalledProcessError where the document cannot be read."""
    with tempfile.TemporaryDirectory() as folder:
        config, made = Path(folder) / "config.json", Path(folder) / "rest"
        config.write_text(json.dumps(CONFIG))
        command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(document())]
        options = ["--output-path", str(made), "--config", str(config), "--meta", "none", "--fail-on-warning"]
        subprocess.run([*command, *options], check=True)  # noqa: S603 - our own words
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(made, to)
    return to


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # it is run by hand
    pass
else:

    class Generated(BuildHookInterface):
        """What hatchling calls before it packs."""

        def initialize(self, version, build_data):
            if not REST.exists() or DOCUMENTS[1].exists():
                generate()


if __name__ == "__main__":
    print(generate())
