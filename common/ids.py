"""Prefixed, sortable identifiers: `run_06f1q8…`, a UUIDv7 in Crockford's base 32."""

import secrets
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
ID_LENGTH = 40  # the longest prefix, an underscore and 26 digits, with room


def uuid7() -> int:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, version, 12 + 62 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random_bits = secrets.randbits(74)
    return (
        (milliseconds & ((1 << 48) - 1)) << 80
        | 0x7 << 76
        | (random_bits >> 62) << 64
        | 0b10 << 62
        | random_bits & ((1 << 62) - 1)
    )


def new_id(prefix: str) -> str:
    """`prefix` and 26 sortable digits: ids made later sort later, to the millisecond."""
    number = uuid7()
    return prefix + "_" + "".join(ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))
