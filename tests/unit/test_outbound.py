"""Outbound HTTP without a network: judging addresses, reading bodies, making pages readable."""

import gzip
import time
import zlib

import pytest

from common.outbound import readable
from common.outbound.addresses import is_public
from common.outbound.body import Oversized, Undecodable, read_body, text_of


@pytest.mark.parametrize(
    "address",
    ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1"],
)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "168.63.129.16",
        "100.64.0.1",
        "100.127.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:c0a8:101::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700::1111%eth0",
        "fec0::1",
        "ff02::1",
        "5f00::1",
        "",
        "example.com",
        "127.1",
    ],
)
def test_everything_else_is_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "outside", ["172.15.255.255", "172.32.0.0", "100.63.255.255", "100.128.0.0", "11.0.0.0"]
)
def test_the_neighbours_of_private_networks_are_public(outside: str) -> None:
    assert is_public(outside)


def test_a_body_is_cut_at_the_limit_and_says_so() -> None:
    assert read_body([b"abc", b"def"], "", 6) == (b"abcdef", False)
    assert read_body([b"abc", b"def"], "", 5) == (b"abcde", True)


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_packed_body_is_cut_at_the_limit_of_what_it_unpacks_to(pack) -> None:
    packed = pack(b"x" * 1000)
    encoding = "gzip" if pack is gzip.compress else "deflate"
    in_pieces = [packed[i : i + 3] for i in range(0, len(packed), 3)]
    assert read_body(in_pieces, encoding, 1000) == (b"x" * 1000, False)
    assert read_body([packed], encoding, 999) == (b"x" * 999, True)


def test_several_gzip_members_are_one_body_and_padding_is_ignored() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\x00" * 8
    assert read_body([packed], "gzip", 100) == (b"one two", False)


def test_an_endless_row_of_empty_members_is_too_large() -> None:
    with pytest.raises(Oversized):
        read_body([gzip.compress(b"")] * 10_000, "gzip", 1000)


@pytest.mark.parametrize(
    ("chunks", "encoding"),
    [
        ([b"not gzip at all"], "gzip"),
        ([gzip.compress(b"hello")[:-9]], "gzip"),
        ([b"anything"], "br"),
        ([b"anything"], "gzip, gzip"),
    ],
)
def test_broken_or_unknown_compression_is_refused(chunks: list[bytes], encoding: str) -> None:
    with pytest.raises(Undecodable):
        read_body(chunks, encoding, 1000)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("héllo 你好".encode(), "text/plain", "héllo 你好"),
        ("héllo".encode("cp1252"), "text/plain", "héllo"),
        ("“quoted”".encode("cp1252"), "text/plain; charset=iso-8859-1", "“quoted”"),
        ("你好".encode("gb18030"), 'text/plain; charset="gb2312"', "你好"),
        ("你好".encode("big5"), "text/plain;charset=Big5", "你好"),
        ('<meta charset="shift_jis">日本'.encode("shift_jis"), "text/html", '<meta charset="shift_jis">日本'),
        (b"\xef\xbb\xbfmarked", "text/plain; charset=latin-1", "marked"),
        ("marked".encode("utf-16"), "text/plain", "marked"),
        (b"caf\xe9", "text/plain; charset=utf-8", "caf\ufffd"),
        (b"plain", "text/plain; charset=no-such-thing", "plain"),
        (b"plain", "text/plain; charset=zlib", "plain"),
        (b"\\ud800", "text/plain; charset=unicode_escape", "\\ud800"),
        (b"a\x00b", "application/json", "a\ufffdb"),
        (b"", "image/png", ""),
    ],
)
def test_text_is_decoded_by_mark_charset_then_guess(body: bytes, content_type: str, text: str) -> None:
    assert text_of(body, content_type) == text


def test_a_cut_in_the_middle_of_a_character_spoils_nothing() -> None:
    assert text_of("né".encode()[:-1], "text/plain", truncated=True) == "n"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"\x89PNG", "image/png"), (b"%PDF-1.7", "application/pdf"), (b"a\x00b", "application/octet-stream")],
)
def test_what_is_no_text_is_refused(body: bytes, content_type: str) -> None:
    with pytest.raises(Undecodable):
        text_of(body, content_type)


def test_a_page_becomes_its_words_a_line_for_each_block() -> None:
    page = """<!DOCTYPE html><html><head><title>Tea &amp; more</title>
      <script>if (a < b) { hide("</p>") }</script><style>p > a {}</style></head>
      <body><!-- <p>not this</p> --><h1>Green
      tea</h1><p>Steep <b>two</b>&nbsp;minutes, 3 &lt; 4.<br>Then pour.</p>
      <ul><li>cup<li>pot</ul><table><tr><td title="a>b">1</td><td>2</td></tr></table></body></html>"""
    assert readable(page).split("\n") == [
        "Tea & more",
        "Green tea",
        "Steep two minutes, 3 < 4.",
        "Then pour.",
        "- cup",
        "- pot",
        "1 | 2 |",
    ]


def test_text_without_markup_stays() -> None:
    assert readable("1 < 2 & 3 > 2") == "1 < 2 & 3 > 2"


@pytest.mark.parametrize(
    "piece",
    ["<", "<a ", "<a", "a<", "<!--", "<!", "</", "<a b='", "<a '\"", "<svg>", "<script>", "&#9", "\n "],
)
def test_no_page_holds_a_worker(piece: str) -> None:
    page = "<" + piece * (1_000_000 // len(piece))
    started = time.process_time()
    readable(page)
    assert time.process_time() - started < 10  # a quadratic reader takes minutes
