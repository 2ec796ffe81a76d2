"""Static files come from Deputy itself, under WSGI and ASGI alike."""

import gzip

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


def fetched(method="get", **headers):
    return getattr(Client(), method)(STYLE, headers=headers)


def test_texts_are_compressed_for_whoever_takes_it():
    whole = b"".join(fetched().streaming_content)
    fetched("head", **{"Accept-Encoding": "gzip"})  # keeps nothing
    packed = fetched(**{"Accept-Encoding": "br, gzip"})

    assert gzip.decompress(packed.content) == whole and len(packed.content) < len(whole) / 2
    assert packed["Content-Encoding"] == "gzip" and int(packed["Content-Length"]) == len(packed.content)
    assert "Accept-Encoding" in packed["Vary"] and "Accept-Encoding" in fetched()["Vary"]
    assert not fetched().has_header("Content-Encoding")
    part = fetched(**{"Accept-Encoding": "gzip", "Range": "bytes=0-9"})
    assert (part.status_code, b"".join(part.streaming_content)) == (206, whole[:10])
    same = {"Accept-Encoding": "gzip", "If-Modified-Since": packed["Last-Modified"]}
    assert fetched(**same).status_code == 304
