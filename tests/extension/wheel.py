"""Build the wheel of the package beside this file, without a build backend."""

import zipfile
from pathlib import Path

METADATA = "Metadata-Version: 2.1\nName: deputy-weather\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def build(folder: Path, entry_points: dict[str, dict[str, str]]) -> Path:
    """The wheel's path. `entry_points`: {group: {name: value}}."""
    points = "\n".join(
        line
        for group, named in entry_points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in named.items()))
    )
    path = folder / "deputy_weather-1.0-py3-none-any.whl"
    info = "deputy_weather-1.0.dist-info"
    source = Path(__file__).parent
    with zipfile.ZipFile(path, "w") as wheel:
        for file in sorted((source / "deputy_weather").rglob("*.py")):
            wheel.write(file, file.relative_to(source))
        written = {"METADATA": METADATA, "WHEEL": WHEEL, "entry_points.txt": points, "RECORD": ""}
        for name, text in written.items():
            wheel.writestr(f"{info}/{name}", text)
    return path
