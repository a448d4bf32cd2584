"""Which addresses are somebody's public server, and not our own network or the cloud's."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Python's is_global alone is no filter: it lets multicast, 6to4 and NAT64 through.
# IANA IPv4 special-purpose registry (RFC 6890), multicast, and Azure's wire server.
NOT_PUBLIC_V4 = tuple(
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
        *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32"),
    )
)
# Global unicast is one block (RFC 4291 section 2.4); all that embeds an IPv4 address or lies
# inside a site is outside it (::/96, ::ffff:0:0/96, 64:ff9b::/96, fc00::/7, fe80::/10, fec0::/10)
# or is named below: Teredo and its neighbours, documentation, 6to4.
PUBLIC_V6 = IPv6Network("2000::/3")
NOT_PUBLIC_V6 = tuple(
    IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)


def is_public(address: Address) -> bool:
    """Tell whether an address can only be reached through the public Internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in NOT_PUBLIC_V4)
    return (
        address.scope_id is None
        and address in PUBLIC_V6
        and not any(address in network for network in NOT_PUBLIC_V6)
    )


def is_within(address: Address, networks: Iterable[Network]) -> bool:
    """Tell whether an address lies in one of the networks."""
    return any(address in network for network in networks)


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Read networks as written in the settings; ValueError names one that is none."""
    return tuple(ip_network(text) for text in texts)
