"""The built-in handler: sends an event to its source's destination, so that no Python is needed."""

import hashlib
import uuid
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from reliability.errors import (
    AddressRefused,
    NoAnswer,
    PermanentError,
    ReliabilityError,
    RetryLater,
)
from reliability.handlers import Event, ProviderHeader, handler
from reliability.models import Destination, DestinationAnswer, Job, Source
from reliability.outbound import Answer, Request, send
from reliability.outbound.signing import signed_headers
from reliability.policy import BACKGROUND
from reliability.work.answers import is_trouble, retry_after, rule_of
from reliability.work.destinations import KIND, answered, pass_breaker, slot
from reliability.work.effects import Effects
from reliability.work.lease import Leased
from reliability.work.settle import Deferred

WINDOW = timedelta(hours=24)
"""How long a destination must remember an ``Idempotency-Key``."""
SENT_ON = ("content-type", "x-github-event", "x-shopify-topic", "x-shopify-shop-domain")
"""Headers of the delivery that go on; signatures, cookies and credentials were never kept."""
HEADER_BYTES_MAX = 200
SHOWN_BYTES_MAX = 2_000


class DestinationFailed(ReliabilityError):
    """The destination answered that it could not take the event this time."""


@handler(
    KIND,
    sink=ProviderHeader("Idempotency-Key", window=WINDOW),
    policy=BACKGROUND,
)
def forward(event: Event) -> Any:
    """Send the event on, body byte for byte, and do what the answer says.

    2xx is done; 202 with our own job as ``Location`` is done when its completion is reported.
    408, 409, 425, 429 and 5xx are tried again, anything else is a letter at once.
    """
    destination = _destination(event)
    job = _job(event)
    pass_breaker(destination)
    with slot(destination):
        answer = _send(event, destination, job)
    _keep(answer, job)
    answered(destination, trouble=is_trouble(answer.status))
    return _judge(answer, destination, job)


def job_url(public_id: uuid.UUID) -> str:
    """Return where the API tells of a job, which is also where its completion is reported."""
    return f"{settings.RELIABILITY_BASE_URL}/api/v1/jobs/{public_id}"


def _destination(event: Event) -> Destination:
    source = Source.objects.select_related("destination").get(
        tenant__slug=event.tenant, slug=event.source
    )
    if source.destination is None:
        raise PermanentError(f"{event.source} has no destination any more")
    return source.destination


def _job(event: Event) -> Leased:
    if not isinstance(event.start, Effects):
        raise PermanentError("forwarding needs a worker's start")
    return event.start.job


def _send(event: Event, destination: Destination, job: Leased) -> Answer:
    public_id = Job.objects.values_list("public_id", flat=True).get(pk=job.id)
    request = Request(
        method="POST",
        url=destination.url,
        headers=headers(event, destination.open(), job_url(public_id)),
        body=event.body,
    )
    try:
        return send(request)
    except NoAnswer:
        answered(destination, trouble=True)
        raise
    except AddressRefused as error:
        raise PermanentError(f"{destination.slug} may not be asked: {error}") from None


def headers(event: Event, secret: str, url: str) -> dict[str, str]:
    """Return all headers of a forwarded event; none holds more than printable ASCII."""
    key = _header_key(event.downstream_key)
    kept = {name: _plain(event.headers.get(name, "")) for name in SENT_ON}
    now = int(timezone.now().timestamp())
    return {
        **{name: value for name, value in kept.items() if value},
        "user-agent": "Reliability",
        "idempotency-key": key,
        "reliability-job": url,
        "reliability-round": str(event.round),
        **signed_headers(secret, message_id=key, seconds=now, body=event.body),
    }


def _header_key(key: str) -> str:
    """Return the downstream key as a header can hold it: as it is, or as its UUIDv5."""
    return key if key == _plain(key) else str(uuid.uuid5(uuid.NAMESPACE_OID, key))


def _plain(text: str) -> str:
    return "".join(one for one in text if " " <= one <= "~")[:HEADER_BYTES_MAX].strip()


def _keep(answer: Answer, job: Leased) -> None:
    DestinationAnswer.objects.create(
        tenant_id=job.tenant_id, job_id=job.id, token=job.token, status=answer.status,
        size_bytes=len(answer.body), cut=answer.cut, body=answer.body,
        sha256=hashlib.sha256(answer.body).digest(), at=timezone.now(),
    )  # fmt: skip


def _judge(answer: Answer, destination: Destination, job: Leased) -> Any:
    said = f"{destination.slug} answered {answer.status}"
    match rule_of(answer.status, destination.rules):
        case "done" if _will_report(answer, job):
            return Deferred(timedelta(seconds=destination.completion_seconds))
        case "done":
            return {"status": answer.status, "text": _text(answer.body)}
        case "bury":
            raise PermanentError(said)
    wait = retry_after(answer.headers, timezone.now())
    raise RetryLater(wait, said) if wait is not None else DestinationFailed(said)


def _will_report(answer: Answer, job: Leased) -> bool:
    """Tell whether a 202 points back at our own job: then it is done when that is reported."""
    if answer.status != HTTPStatus.ACCEPTED:
        return False
    public_id = Job.objects.values_list("public_id", flat=True).get(pk=job.id)
    return _path(answer.headers) in {
        urlsplit(job_url(public_id)).path,
        f"{urlsplit(job_url(public_id)).path}/complete",
    }


def _path(heard: Mapping[str, str]) -> str:
    try:
        return urlsplit(heard.get("location", "")).path
    except ValueError:
        return ""


def _text(body: bytes) -> str:
    return (
        body[:SHOWN_BYTES_MAX]
        .decode("utf-8", "replace")
        .replace("\x00", "\N{REPLACEMENT CHARACTER}")
    )
