"""Alerts to chats and pagers, by Apprise: four services, at their makers' hosts and no other."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from reliability.alerts.message import PREFIX, alert_of, link, stable_id, subject
from reliability.alerts.wording import one_line, the_rule
from reliability.errors import AddressRefused, NoAnswer
from reliability.models import AlertDelivery

ADDRESS_MAX = 2_000
MISSING = "chats and pagers need Apprise: pip install 'reliability[chat]'"
# In a name these would call a whole channel, or dress a link up as a word.
HARMLESS = str.maketrans({"<": "‹", ">": "›", "&": "+", "[": "(", "]": ")"})


@dataclass(frozen=True)
class Service:
    """One plug-in of Apprise: what its address may ask for, and where it may lead."""

    module: str
    plugin: str
    parameters: frozenset[str] = frozenset()
    hosts: re.Pattern[str] | None = None
    """``None``: the plug-in knows its hosts itself, and the address cannot choose."""
    userinfo: bool = False
    body_format: str = "text"
    """Where ``markdown`` is said, it is so that the plug-in leaves the link as it is."""


MICROSOFT = re.compile(r"([a-z0-9-]+\.)+(logic\.azure\.com|api\.powerplatform\.com)")
SERVICES: Mapping[str, Service] = {
    "slack": Service("slack", "NotifySlack"),
    "workflows": Service(  # Teams
        "workflows",
        "NotifyWorkflows",
        frozenset({"pa", "route", "ver"}),
        MICROSOFT,
        body_format="markdown",
    ),
    "pagerduty": Service("pagerduty", "NotifyPagerDuty", frozenset({"region"}), userinfo=True),
    "opsgenie": Service("opsgenie", "NotifyOpsgenie", frozenset({"region"})),
}
HTTPS = 443
OURS = {
    "app_id": "Reliability", "app_desc": "Reliability", "app_url": "",
    "image_url_mask": "",  # no picture from anywhere
    "http_redirects": False,
}  # fmt: skip


def judge(address: str) -> str:
    """Return the scheme of an address that may be saved. Raises ``AddressRefused``.

    Apprise must read it, too; what it reads as the host is judged, not what we read.
    """
    _plugin(address)
    return _scheme(address)


def notify(owed: AlertDelivery, address: str) -> None:
    """Send one message. Raises ``AddressRefused``, or ``NoAnswer`` where it was not taken."""
    scheme = _scheme(address)
    plugin = _plugin(address, **_incident(scheme, owed))
    title, body = _words(owed)
    taken = plugin.notify(
        body=body, title=title, notify_type=_weight(owed),
        body_format=SERVICES[scheme].body_format,
    )  # fmt: skip
    if not taken:
        raise NoAnswer(f"{scheme} did not take it")


def _scheme(address: str) -> str:
    return address.partition("://")[0].lower()


def _plugin(address: str, **more: Any) -> Any:
    scheme = _scheme(address)
    service = SERVICES.get(scheme)
    if service is None:
        known = ", ".join(f"{name}://" for name in SERVICES)
        raise AddressRefused(f"only https:// and {known} are known")
    _judge_text(address, service)
    try:
        apprise = import_module("apprise")
        kind = getattr(import_module(f"apprise.plugins.{service.module}"), service.plugin)
    except ImportError:
        raise AddressRefused(MISSING) from None
    logging.getLogger("apprise").setLevel(logging.INFO)  # its debug lines print addresses
    read = kind.parse_url(address.replace("/#", "/%23"))
    try:
        made = kind(asset=apprise.AppriseAsset(**OURS), **(read or {}) | more)
    except TypeError:  # what its parser could not read, and what it raises for the rest
        raise AddressRefused(f"this is no address of {scheme}") from None
    host = str(made.host or "").lower()
    if service.hosts and not (service.hosts.fullmatch(host) and _usual(made.port)):
        raise AddressRefused(f"{scheme} goes to hosts of its maker only")
    return made


def _judge_text(address: str, service: Service) -> None:
    """Refuse what would change how the plug-in works: certificates, templates, redirects."""
    if not address.isascii() or not address.isprintable() or set(address) & {" ", "\\"}:
        raise AddressRefused("the address holds a character that must be escaped")
    if len(address) > ADDRESS_MAX:
        raise AddressRefused(f"the address is longer than {ADDRESS_MAX} characters")
    try:
        parts = urlsplit(address.replace("/#", "/%23"))
        asked = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    except ValueError:
        raise AddressRefused("the address cannot be read") from None
    if wrong := sorted(asked - service.parameters):
        raise AddressRefused(f"it may not set {wrong[0][:40]!r}")
    if ("@" in parts.netloc) != service.userinfo:
        raise AddressRefused("its user part is not what this service takes")


def _usual(port: int | None) -> bool:
    return port in {None, HTTPS}


def _words(owed: AlertDelivery) -> tuple[str, str]:
    """Return title and body: what stands where, the link, the rule; names cannot call anybody."""
    if owed.alert is None:
        return f"{PREFIX} Test of the alerts", "Alerts reach this channel."
    alert = alert_of(owed)
    rule = f"Rule: {one_line(alert.rule.name)}. {the_rule(alert.rule)}".translate(HARMLESS)
    said = subject(owed).removeprefix(PREFIX).translate(HARMLESS)
    return f"{PREFIX}{said}", f"{rule}\n\n{link(alert)}"


def _weight(owed: AlertDelivery) -> str:
    match owed.occasion.partition(" ")[0]:
        case "opened" | "reminder":
            return "failure"
        case "resolved":
            return "success"
        case _:
            return "info"


def _incident(scheme: str, owed: AlertDelivery) -> dict[str, Any]:
    """Name the incident by its alert, so that a repeat or a reminder opens no second one."""
    name = str(owed.alert.public_id) if owed.alert else stable_id(owed)
    resolved = owed.occasion == "resolved"
    match scheme:
        case "pagerduty":
            return {"action": "map", "dedup": name}
        case "opsgenie" if resolved:  # its plug-in forgets which alert it opened
            return {"action": "new", "alias": f"{name}-resolved", "priority": "low"}
        case "opsgenie":
            return {"action": "new", "alias": name}
        case _:
            return {}
