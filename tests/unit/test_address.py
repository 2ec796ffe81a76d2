"""Links lead to where `make run` listens, also from a shell that does not know its PORT."""

import pytest

from launch.home import address, keep_address


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("DEPUTY_HOME", str(tmp_path))


def test_before_the_first_run_there_is_only_the_default():
    assert address("http://127.0.0.1:8000") == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "localhost"), ("::", "localhost"), ("::1", "[::1]")],
)
def test_the_latest_run_is_where_links_lead(host, shown):
    keep_address("127.0.0.1", 1)
    keep_address(host, 8123)

    assert address("http://127.0.0.1:8000") == f"http://{shown}:8123"
