"""Which e-mail addresses are one and the same: those that mail delivers to one mailbox.

A database that ignores case takes letters for the same that stand in different addresses: `ı` and `i`, or
`ſ` and `s`, have the same capital, and `ß` is `ss` where case is folded.
"""

import re

PLAIN = re.compile(r"[^\s@,;<>\"]+@[^\s@,;<>\"]+")
ASCII_LETTERS = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


def is_plain(address: str) -> bool:
    """Whether it is one address and nothing else."""
    return bool(PLAIN.fullmatch(address))


def lowered(address: str) -> str:
    """In small letters, of ASCII alone: what two addresses are compared by."""
    return address.translate(ASCII_LETTERS)


def is_same(one: str, other: str) -> bool:
    return lowered(one) == lowered(other)
