"""The recipes of docs/frameworks.md are short, whole and pinned. The acceptance tests run them."""

import json
import re

from tests.unit.test_docs import page

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(kind):
    return [text for named, text in BLOCK.findall(page("docs/frameworks.md")) if named == kind]


def test_every_recipe_can_be_read_and_has_about_ten_lines():
    recipes = blocks("python")
    assert len(recipes) == 13
    for recipe in recipes:
        compile(recipe, "recipe", "exec")
        lines = [line for line in recipe.splitlines() if line and not re.match(r"(from|import) ", line)]
        assert len(lines) <= 10 or "def send_email" in recipe, recipe


def test_every_package_that_is_installed_is_pinned():
    installed = [
        line for text in blocks("sh") for line in text.splitlines() if line.startswith("pip install")
    ]
    assert len(installed) == 7
    for line in installed:
        assert all("==" in package for package in line.split()[2:]), line


def test_the_files_of_clients_name_deputy_and_a_token():
    for text in blocks("json"):
        (server,) = json.loads(text)["mcpServers"].values()
        assert "Bearer" in json.dumps(server)
