"""Which IP addresses are public: the ones a model may send Deputy to.

Written out from IANA's special-purpose registries rather than asked of `ipaddress`, whose answers
differ between Python releases.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

NOT_PUBLIC_V4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network, unspecified
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's metadata service, at an address that looks public
        "169.254.0.0/16",  # link-local, the clouds' metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
GLOBAL_V6 = IPv6Network("2000::/3")  # the rest of IPv6 is local, multicast or not handed out
NOT_PUBLIC_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments; Teredo, which carries IPv4 addresses, among them
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Whether `address`, as getaddrinfo writes it, may be reached. What is no address is not public."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        return _public_v6(parsed)
    return _public_v4(parsed)


def _public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in NOT_PUBLIC_V4)


def _public_v6(address: IPv6Address) -> bool:
    if address.scope_id:
        return False
    wrapped = _wrapped(address)
    if wrapped is not None:
        return _public_v4(wrapped)
    return address in GLOBAL_V6 and not any(address in network for network in NOT_PUBLIC_V6)


def _wrapped(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to an IPv4-mapped, 6to4 or NAT64 address end up at."""
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
