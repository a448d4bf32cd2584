"""Alerts to a URL of the tenant's own: JSON, signed as the Standard Webhooks specification says."""

from __future__ import annotations

import json
from typing import Any

from django.utils import timezone

from reliability.alerts.message import alert_of, headline_of, link, stable_id, url
from reliability.alerts.wording import one_line
from reliability.conf import conf
from reliability.errors import NoAnswer
from reliability.models import AlertDelivery
from reliability.models.channel import Secrets
from reliability.outbound import Request, send
from reliability.outbound.signing import signed_headers

GOOD = range(200, 300)
ANSWER_BYTES_MAX = 1_024


def post(owed: AlertDelivery, secrets: Secrets) -> None:
    """Send one message by the guarded client. Raises ``AddressRefused`` or ``NoAnswer``.

    Any answer but 2xx counts as none, a redirect too. ``webhook-id`` depends on alert, occasion
    and channel alone: a receiver knows a repeat by it.
    """
    body = json.dumps(told(owed), separators=(",", ":")).encode()
    signed = signed_headers(
        secrets.signing,
        message_id=f"msg_{stable_id(owed)}",
        seconds=int(timezone.now().timestamp()),
        body=body,
    )
    answer = send(
        Request(
            method="POST", url=secrets.address, body=body, bytes_max=ANSWER_BYTES_MAX,
            headers={"Content-Type": "application/json", "User-Agent": "Reliability"} | signed,
            time=conf().outbound_time,
        )
    )  # fmt: skip
    if answer.status not in GOOD:
        raise NoAnswer(f"it answered {answer.status}")


def told(owed: AlertDelivery) -> dict[str, Any]:
    """Return what the body says: the alert, its scope, figures and a link; of nobody's data."""
    word, _, number = owed.occasion.partition(" ")
    about = {"type": f"alert.{word}", "timestamp": owed.counted_at.isoformat()}
    if owed.alert is None:
        return about | {"data": {"link": url("/alerts/")}}
    alert = alert_of(owed)
    rule, source = alert.rule, alert.source
    data = {
        "alert": str(alert.public_id),
        "rule": {"id": str(rule.public_id), "name": one_line(rule.name)},
        "scope": {
            "tenant": alert.tenant.slug,
            "source": source.slug if source else None,
            "kind": rule.kind or None,
            "cause": rule.fingerprint or None,
            "currency": rule.currency or None,
        },
        "measure": rule.measure,
        "value": owed.value,
        "peak": max(alert.peak, owed.value),
        "opens_at": rule.high,
        "closes_at": rule.low,
        "since": alert.since.isoformat(),
        "opened_at": alert.opened_at.isoformat() if alert.opened_at else None,
        "reminder": int(number) if number else None,
        "said": headline_of(owed),
        "link": link(alert),
    }
    return about | {"data": data}
