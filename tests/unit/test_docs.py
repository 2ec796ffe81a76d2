"""The documentation names what is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
CODE = re.compile(r"`([^`\n]+)`")
MADE_ELSEWHERE = {"docs/images/run.png"}  # a picture of the admin, taken by its browser test


def page(name):
    return (ROOT / name).read_text("utf-8")


def rows(name):
    """The cells of every row of every table, but for heads and rules."""
    for line in page(name).splitlines():
        if line.startswith("|") and not set(line) <= set("|-: "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def steps():
    return [
        (file[0], CODE.findall(names))
        for first, names, *_ in rows("docs/flow.md")
        if (file := CODE.findall(first))
    ]


def test_the_flow_is_long_enough_to_be_one():
    assert len(steps()) > 30


@pytest.mark.parametrize(
    ("file", "names"), steps(), ids=[f"{n}-{file}" for n, (file, _) in enumerate(steps())]
)
def test_each_file_of_the_flow_has_the_names_to_look_for(file, names):
    text = page(file)
    assert names
    missing = [
        name
        for name in names
        if not re.search(rf"^\s*(?:async def|def|class)\s+{name}\b", text, re.MULTILINE)
    ]
    assert not missing


def test_every_ruling_stands_there_once_in_order():
    numbers = [int(cells[0]) for cells in rows("docs/rulings.md") if cells[0].isdigit()]
    assert numbers == list(range(1, 48))


def test_every_test_a_ruling_names_exists():
    there = {path.stem: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    cited = [cells for cells in rows("docs/rulings.md") if cells[0].isdigit() or cells[0].startswith("seed ")]
    assert {cells[0] for cells in cited} >= {"1", "37", "seed 000", "seed 001", "seed 003", "seed 004"}
    for number, _, shown in cited:
        named = CODE.findall(shown)
        assert named or shown == "not yet", f"ruling {number} shows nothing"
        for entry in named:
            file, _, test = entry.partition(": ")
            assert file in there, f"ruling {number}: no file {file}"
            assert f"def {test}(" in there[file], f"ruling {number}: {file} has no {test}"


def test_every_variable_that_is_read_is_explained():
    read = set()
    for path in [*(ROOT / "config").rglob("*.py"), *(ROOT / "launch").rglob("*.py")]:
        read |= set(
            re.findall(
                r"(?:text|flag|whole_number|names|networks|choice|origins?|paths)\(\s*\"([A-Z_]+)\"",
                path.read_text("utf-8"),
            )
        )
    asking = [*(ROOT / "runs" / "providers").glob("*.py"), *(ROOT / "memory" / "embeddings").glob("*.py")]
    for path in asking:
        read |= set(re.findall(r"\"([A-Z]+(?:_[A-Z]+)*_(?:API_KEY|BASE_URL))\"", path.read_text("utf-8")))
    assert {"DATABASE_URL", "OPENAI_API_KEY", "EMBEDDING_BASE_URL"} <= read
    explained = set(CODE.findall(page("docs/operating.md")))
    assert not read - explained


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        if "://" in target or target.startswith("#"):
            continue
        there = (path.parent / target.split("#")[0]).resolve()
        assert there.exists() or str(there.relative_to(ROOT)) in MADE_ELSEWHERE, target


def test_commands_that_are_named_exist():
    commands = {path.stem for path in ROOT.glob("*/management/commands/*.py")}
    django = {"check", "migrate", "createsuperuser", "spectacular"}
    for path in PAGES:
        for command in re.findall(r"manage\.py (\w+)", path.read_text("utf-8")):
            assert command in commands | django, f"{path.name}: {command}"


def test_targets_of_make_that_are_named_exist():
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE))
    for path in PAGES:
        for line in re.findall(r"(?:`|^    )make ([a-z-]+)", path.read_text("utf-8"), re.MULTILINE):
            assert line in targets, f"{path.name}: make {line}"


def test_every_fault_has_its_line_and_every_line_its_tests():
    there = {path.stem: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    lines = [cells for cells in rows("docs/guarantees.md") if cells[-1] != "shown by"]
    numbers = [cells[0] for cells in lines if re.fullmatch(r"F\d+", cells[0])]
    assert numbers == [f"F{number}" for number in range(1, 22)]
    for cells in lines:
        named = CODE.findall(cells[-1])
        assert named, f"{cells[0]} shows nothing"
        for entry in named:
            file, _, test = entry.partition(": ")
            assert f"def {test}(" in there.get(file, ""), f"{cells[0]}: {file} has no {test}"
            in_processes = f"*`{entry}`*" in cells[-1]
            assert in_processes == (ROOT / "tests" / "acceptance" / f"{file}.py").exists(), entry
