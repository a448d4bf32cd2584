"""Where a request may go: schemes, ports and addresses, judged on every address of a name."""

import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from reliability.conf import conf
from reliability.errors import AddressRefused, NoAnswer
from reliability.outbound.addresses import Address, Network, is_public, is_within, networks

URL_BYTES_MAX = 2_000
RESOLVERS_MAX = 8
PORTS = {"https": 443, "http": 80}

Resolve = Callable[[str, int], Sequence[Any]]
"""As ``socket.getaddrinfo``: rows whose last member begins with the address."""


def _look_up(host: str, port: int) -> Sequence[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


@dataclass(frozen=True, kw_only=True)
class Guard:
    """What is allowed. ``allowed`` are private networks of our own, any port of which is fine."""

    allowed: Sequence[Network] = ()
    ports: Sequence[int] = (80, 443)
    plain_http: bool = False
    resolve: Resolve = _look_up
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)


@dataclass(frozen=True)
class Target:
    """A URL that passed, with the addresses that were judged: only these may be connected to."""

    scheme: str
    host: str
    port: int
    path: str
    addresses: tuple[Address, ...]


@cache
def guard() -> Guard:
    """Return the guard the settings describe."""
    settings = conf()
    return Guard(
        allowed=networks(settings.outbound_private_networks),
        ports=settings.outbound_ports,
        plain_http=settings.outbound_plain_http,
    )


def judge(url: str, rules: Guard) -> Target:
    """Resolve a URL and refuse it unless every address of its host may be reached.

    Raises ``AddressRefused`` (for good) or ``NoAnswer`` (the name does not resolve now).
    """
    parts = _parse(url)
    port = parts.port or PORTS[parts.scheme]
    host = _host(parts)
    addresses = _resolve(host, port, rules)
    private = [one for one in addresses if not is_public(one)]
    if any(not is_within(one, rules.allowed) for one in private):
        raise AddressRefused(f"{host} has an address that is not public")
    inside = len(private) == len(addresses)
    if not inside and port not in rules.ports:
        raise AddressRefused(f"port {port} is not among the allowed ones")
    if not inside and parts.scheme == "http" and not rules.plain_http:
        raise AddressRefused("plain http is not allowed: use https")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, path, tuple(addresses))


def _parse(url: str) -> SplitResult:
    if not url.isascii() or not url.isprintable() or set(url) & {" ", "\\"}:
        raise AddressRefused("the URL holds a character that must be escaped")
    if len(url) > URL_BYTES_MAX:
        raise AddressRefused(f"the URL is longer than {URL_BYTES_MAX} bytes")
    try:
        parts = urlsplit(url)
        port_is_sane = parts.port is None or parts.port > 0
    except ValueError:
        raise AddressRefused("the URL cannot be read") from None
    if parts.scheme not in PORTS or not parts.hostname or not port_is_sane:
        raise AddressRefused("only http:// and https:// URLs with a host are allowed")
    if "@" in parts.netloc:
        raise AddressRefused("a URL with a user or password is not allowed")
    return parts


def _host(parts: SplitResult) -> str:
    """Return the host as it is looked up and shown to TLS."""
    return (parts.hostname or "").rstrip(".")


def _resolve(host: str, port: int, rules: Guard) -> list[Address]:
    """Look up all addresses; a resolver that hangs is given up on, not waited for."""
    waiting = _resolvers().submit(rules.resolve, host, port)
    try:
        found = waiting.result(timeout=conf().outbound_connect_time.total_seconds())
    except (OSError, UnicodeError):
        raise NoAnswer(f"{host} does not resolve") from None
    except TimeoutError:
        waiting.cancel()
        raise NoAnswer(f"{host} took too long to resolve") from None
    addresses = list(dict.fromkeys(_address(row) for row in found))
    if not addresses:
        raise NoAnswer(f"{host} does not resolve")
    return addresses


def _address(row: Any) -> Address:
    return ip_address(row[4][0])


@cache
def _resolvers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(RESOLVERS_MAX, thread_name_prefix="resolve")
