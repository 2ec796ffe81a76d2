"""What a page weighs: the bytes that a browser fetches for it the first time, without images."""

import re
from html.parser import HTMLParser
from typing import Any

IMPORTED = re.compile(r"""@import\s+(?:url\()?['"]?([^'")]+)|src:\s*url\(['"]?([^'")]+)""")


class Needed(HTMLParser):
    """The stylesheets and scripts that a page names."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[str] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        said = dict(attributes)
        if tag == "script" and said.get("src"):
            self.files.append(said["src"])
        if tag == "link" and said.get("rel") in ("stylesheet", "preload", "modulepreload"):
            self.files.append(said["href"])


def weights(client: Any, address: str) -> dict[str, int]:
    """Bytes by address, as they go over the wire to a browser that takes gzip: the page and its files."""
    answer = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200, (address, answer.status_code)
    needed = Needed()
    plain = client.get(address).content.decode()
    needed.feed(plain)
    found = {address: len(answer.content)}
    for file in dict.fromkeys(needed.files):
        found |= _file(client, file)
    return found


def _file(client: Any, address: str) -> dict[str, int]:
    answer = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200, address
    size = len(b"".join(answer.streaming_content) if answer.streaming else answer.content)
    return {address: size}
