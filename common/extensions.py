"""What other packages add to Deputy: tools, model providers and notifiers (docs/extending.md).

A package names what it brings by an entry point of the group `deputy.tools`, `deputy.providers` or
`deputy.notifiers`; an operator may name it by a setting instead (DEPUTY_TOOLS, DEPUTY_PROVIDERS). What
cannot be loaded stops the start with one line.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any

from common.env import BadSetting
from common.failures import FAILURES


@dataclass(frozen=True)
class Extension:
    """One thing that a package brings. `source` says who named it, for errors; `target` is what was named."""

    name: str
    source: str
    target: str

    def load(self) -> Any:
        """The module or object named. Raises BadSetting in one line, whatever the package does wrong."""
        try:
            return resolve_name(self.target)
        except FAILURES as error:
            raise self.refused(f"it cannot be loaded: {type(error).__name__}: {error}") from error

    def refused(self, why: str) -> BadSetting:
        """The one line that stops the start."""
        first = " ".join(why.split())[:400]
        return BadSetting(f"{self.source} brings {self.target}, and {first}.")


def brought(kind: str) -> Iterator[Extension]:
    """The entry points of installed packages in the group `deputy.{kind}`, by name."""
    for point in sorted(entry_points(group=f"deputy.{kind}"), key=lambda point: point.name):
        package = point.dist.name if point.dist else "an installed package"
        yield Extension(point.name, f"the package {package}", point.value.partition("[")[0].strip())


def named(setting: str, paths: Mapping[str, str]) -> Iterator[Extension]:
    """What a setting names: {name: 'package.module' or 'package.module:object'}."""
    for name, path in paths.items():
        yield Extension(name, setting, path)
