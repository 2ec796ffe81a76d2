"""Static files come from Deputy itself, under WSGI and ASGI alike."""

import pytest
from django.test import AsyncClient, Client

STYLE = "/static/deputy/admin.css"


@pytest.mark.parametrize("path", [STYLE, "/static/none.css"])
def test_they_are_the_same_either_way(path):
    plain = Client().get(path)

    async def other():
        return await AsyncClient().get(path)

    import asyncio

    answer = asyncio.run(other())
    assert (plain.status_code, answer.status_code) == ((200, 200) if path == STYLE else (404, 404))
    if path == STYLE:
        assert plain.headers["Content-Type"] == answer.headers["Content-Type"] == 'text/css; charset="utf-8"'
        assert b"".join(plain.streaming_content)
