"""The recipes of docs/extending.md are the code of the package that the acceptance test installs."""

import re

from tests.unit.test_docs import ROOT, page

PACKAGE = ROOT / "tests" / "extension" / "deputy_weather"


def test_every_recipe_is_code_of_the_package_that_is_installed():
    code = "\n".join(path.read_text("utf-8") for path in PACKAGE.glob("*.py"))
    recipes = re.findall(r"```python\n(.*?)```", page("docs/extending.md"), re.DOTALL)
    assert len(recipes) >= 5
    for recipe in recipes:
        assert recipe.strip() in code, recipe


def test_the_entry_points_are_those_that_are_installed():
    from tests.acceptance.test_extension import GOOD

    shown = re.search(r"```toml\n(.*?)```", page("docs/extending.md"), re.DOTALL).group(1)
    for group, named in GOOD.items():
        assert f'[project.entry-points."{group}"]' in shown
        for name, value in named.items():
            assert f'{name} = "{value}"' in shown
