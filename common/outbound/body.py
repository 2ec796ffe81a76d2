"""From the bytes of an HTTP answer to text, with both sides of the decompression bounded."""

import codecs
import re
import zlib
from collections.abc import Iterable

NOT_TEXT = re.compile(r"(audio|font|image|video)/(?!svg\+xml)|application/(pdf|zip|gzip)\b", re.IGNORECASE)
TEXT_LIKE = re.compile(r"text/|.*[/+](json|xml|javascript|x-www-form-urlencoded)\b", re.IGNORECASE)
CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE | re.ASCII)
META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
WIDER = {"ascii": "cp1252", "iso8859_1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}  # as browsers do
NO_CHARSET = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf_7"})
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Undecodable(ValueError):
    """The answer is not text, or its compression is broken or unknown."""


class Oversized(ValueError):
    """More came over the wire than the text that was asked for could need."""


def read_body(chunks: Iterable[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """At most `limit` decoded bytes, and whether there were more.

    Never holds more than `limit` and one chunk, whatever the chunks unpack to. Raises Undecodable
    and Oversized.
    """
    unpack = _unpacker(encoding)
    body = bytearray()
    wire = 0
    for chunk in chunks:
        wire += len(chunk)
        if wire > 2 * limit + 65_536:
            raise Oversized("the answer is larger packed than unpacked")
        body += unpack.feed(chunk, limit + 1 - len(body))
        if len(body) > limit:
            return bytes(body[:limit]), True
    if wire:
        unpack.finish()
    return bytes(body), False


def text_of(body: bytes, content_type: str, *, truncated: bool = False) -> str:
    """`body` as text that a database can store; what cannot be decoded becomes U+FFFD.

    The byte order mark decides, then the declared charset, then UTF-8, then Windows-1252. Raises
    Undecodable for what is no text.
    """
    if body and NOT_TEXT.match(content_type):
        raise Undecodable(f"the answer is {content_type.partition(';')[0]}, not text")
    charset = _by_bom(body) or _declared(body, content_type)
    text = _decode(body, charset, truncated) if charset else _guess(body, truncated)
    if "\x00" in text and not TEXT_LIKE.match(content_type):
        raise Undecodable("the answer is binary, not text")
    return UNSTORABLE.sub("\ufffd", text.removeprefix("\ufeff"))


class _AsItIs:
    def feed(self, chunk: bytes, room: int) -> bytes:
        return chunk[:room]

    def finish(self) -> None:
        pass


class _Inflate:
    """gzip (also several members in a row) and deflate, never unpacking more than there is room for."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=47)

    def feed(self, chunk: bytes, room: int) -> bytes:
        unpacked = bytearray()
        try:
            while chunk and len(unpacked) < room:
                if self._member.eof:
                    if chunk[0] != 0x1F:
                        break  # padding after the last member
                    self._member = zlib.decompressobj(wbits=47)
                unpacked += self._member.decompress(chunk, room - len(unpacked))
                chunk = self._member.unused_data
        except zlib.error as error:
            raise Undecodable(f"the answer's compression is broken: {error}") from None
        return bytes(unpacked)

    def finish(self) -> None:
        if not self._member.eof:
            raise Undecodable("the answer's compression ends early")


def _unpacker(encoding: str) -> _AsItIs | _Inflate:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return _AsItIs()
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Inflate()
    raise Undecodable(f"the answer is packed as {encoding[:40]!r}, which was not asked for")


def _by_bom(body: bytes) -> str | None:
    return next((charset for bom, charset in BOMS if body.startswith(bom)), None)


def _declared(body: bytes, content_type: str) -> str | None:
    header = CHARSET.search(content_type)
    if header:
        return _charset(header[1])
    meta = META_CHARSET.search(body[:1024]) if "html" in content_type.lower() else None
    return _charset(meta[1].decode("ascii", "replace")) if meta else None


def _charset(label: str) -> str | None:
    """Python's name of a charset; None for what is none or would be slow or unsafe to decode."""
    try:
        name = codecs.lookup(label).name.replace("-", "_")
        " ".encode(name)  # refuses codecs that are no charsets, like zlib
    except (LookupError, ValueError):
        return None
    return None if name in NO_CHARSET else WIDER.get(name, name)


def _decode(body: bytes, charset: str, truncated: bool) -> str:
    return codecs.getincrementaldecoder(charset)("replace").decode(body, final=not truncated)


def _guess(body: bytes, truncated: bool) -> str:
    try:
        return codecs.getincrementaldecoder("utf-8")("strict").decode(body, final=not truncated)
    except UnicodeDecodeError:
        return _decode(body, "cp1252", truncated)
