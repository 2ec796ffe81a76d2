"""Prefixed, sortable identifiers: `run_06f1q8…`, a UUIDv7 in Crockford's base 32."""

import secrets
import time
from datetime import datetime

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
ID_LENGTH = 31  # the longest prefix (4), an underscore and 26 digits


def uuid7() -> int:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, version, 12 bits of their fraction, 62 random bits.

    The fraction (section 6.2, method 3) is a quarter of a microsecond: what one process makes in one go,
    such as the rows of a file, sorts in the order in which it was made.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    return (
        (milliseconds & ((1 << 48) - 1)) << 80
        | 0x7 << 76
        | (nanoseconds << 12) // 1_000_000 << 64
        | 0b10 << 62
        | secrets.randbits(62)
    )


def new_id(prefix: str) -> str:
    """`prefix` and 26 sortable digits: ids made later sort later; across processes, to the millisecond."""
    return _written(prefix, uuid7())


def first_of(prefix: str, moment: datetime) -> str:
    """What sorts before every id made at this moment or later, and after those made earlier."""
    return _written(prefix, int(moment.timestamp() * 1000) << 80)


def _written(prefix: str, number: int) -> str:
    return prefix + "_" + "".join(ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def made_at(made: str) -> float:
    """When an id was made, in seconds since 1970, by the clock of the machine that made it."""
    number = 0
    for digit in made.rpartition("_")[2]:
        number = number << 5 | ALPHABET.index(digit)
    return (number >> 80) / 1000


def organization_id() -> str:
    return new_id("org")


def project_id() -> str:
    return new_id("prj")


def membership_id() -> str:
    return new_id("mbr")


def identity_provider_id() -> str:
    return new_id("idp")


def kept_sign_in_id() -> str:
    return new_id("ksi")


def custom_role_id() -> str:
    return new_id("mrl")


def change_id() -> str:
    return new_id("chg")


def proposal_id() -> str:
    return new_id("prp")


def token_id() -> str:
    return new_id("tok")


def role_id() -> str:
    return new_id("rol")


def agent_id() -> str:
    return new_id("agt")


def group_id() -> str:
    return new_id("grp")


def member_id() -> str:
    return new_id("gmb")


def example_id() -> str:
    return new_id("rex")


def run_id() -> str:
    return new_id("run")


def call_id() -> str:
    return new_id("tcl")


def wait_id() -> str:
    return new_id("wai")


def approval_id() -> str:
    return new_id("apr")


def capability_id() -> str:
    return new_id("cap")


def binding_id() -> str:
    return new_id("tbd")


def declaration_id() -> str:
    return new_id("tdc")


def entity_id() -> str:
    return new_id("ent")


def rule_id() -> str:
    return new_id("rul")


def grant_id() -> str:
    return new_id("grt")


def memory_id() -> str:
    return new_id("mem")


def mcp_server_id() -> str:
    return new_id("mcs")


def mcp_tool_id() -> str:
    return new_id("mct")


def remote_agent_id() -> str:
    return new_id("rag")


def remote_task_id() -> str:
    return new_id("rtk")


def mcp_task_id() -> str:
    return new_id("mtk")


def connected_account_id() -> str:
    return new_id("cac")


def model_key_id() -> str:
    return new_id("mky")


def channel_id() -> str:
    return new_id("chn")


def webhook_id() -> str:
    return new_id("whe")


def context_id() -> str:
    return new_id("ctx")


def message_id() -> str:
    return new_id("msg")


def schedule_id() -> str:
    return new_id("sch")


def scheduled_run_id() -> str:
    return new_id("sru")


def shown_words_id() -> str:
    return new_id("shw")
