"""Outbound HTTP to addresses a model may name: public ones only, bounded in time and in size.

`fetch(url) -> Fetched` asks, `OutboundError` says why there is no answer, `check(url)` says beforehand what
would be refused, `readable(html)` makes a page plain text.
"""

from common.outbound.client import Fetched, check, check_headers, fetch
from common.outbound.errors import OutboundError
from common.outbound.readable import readable

__all__ = ["Fetched", "OutboundError", "check", "check_headers", "fetch", "readable"]
