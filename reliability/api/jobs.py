"""`POST /jobs` with an Idempotency-Key, `GET /jobs/<id>`, `POST /jobs/<id>/complete`."""

from dataclasses import dataclass
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from reliability.api.entry import api, say
from reliability.claim.body import JsonValue, Unparseable, load
from reliability.claim.enqueue import Absorbed, Accepted, Duplicate, Taken, enqueue
from reliability.claim.raw import Unread, read_body
from reliability.conf import conf
from reliability.errors import KeyConflict, KeyNotAccepted
from reliability.models import Job, Tenant
from reliability.work.complete import AlreadyDone, Completed, NotExpected, Outcome, complete

KEY_HEADER = "Idempotency-Key"
MEMBERS = {"kind", "payload", "asked_by", "in_flight"}
REFUSE = "refuse"
IN_FLIGHT = {Job.State.READY, Job.State.RUNNING}


@dataclass(frozen=True)
class _Wanted:
    kind: str
    payload: Any
    asked_by: str
    refuse_in_flight: bool


@api("POST")
def enqueue_job(request: HttpRequest, tenant: Tenant) -> HttpResponse:
    """Take in one own job; the answer to a repeat is the original with its result so far.

    The body is `{"kind": …, "payload": …}`; with `"in_flight": "refuse"` a repeat of a job that
    is not finished is answered 409.
    """
    key = request.headers.get(KEY_HEADER, "")
    if not key:
        return say(HTTPStatus.BAD_REQUEST, f"send an {KEY_HEADER}")
    wanted = _read(request)
    if isinstance(wanted, Unread):
        return say(wanted.status, wanted.why)
    try:
        taken = enqueue(
            wanted.kind,
            key=key,
            tenant=tenant,
            payload=wanted.payload,
            asked_by=wanted.asked_by,
        )
    except (KeyNotAccepted, KeyConflict) as error:
        return say(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
    return _answer(taken, refuse_in_flight=wanted.refuse_in_flight)


@api("GET")
def show_job(_request: HttpRequest, tenant: Tenant, public_id: UUID) -> HttpResponse:
    """Tell a job's state, and its result once it is done."""
    job = Job.objects.filter(public_id=public_id, tenant=tenant).first()
    if job is None:
        return say(HTTPStatus.NOT_FOUND, "no such job")
    return JsonResponse({"job": str(job.public_id), "state": job.state, "result": job.result})


@api("POST")
def complete_job(request: HttpRequest, tenant: Tenant, public_id: UUID) -> HttpResponse:
    """Finish a forwarded job; the body, if any, is its result. Saying it twice is no error."""
    bare = not {"Content-Length", "Transfer-Encoding"} & set(request.headers)
    body = b"" if bare else read_body(request, bytes_max=conf().result_bytes_max)
    if isinstance(body, Unread):
        return say(body.status, body.why)
    try:
        result = _plain(load(body)) if body else None
    except Unparseable as error:
        return say(HTTPStatus.BAD_REQUEST, error.reason)
    return _reported(complete(public_id, tenant, result))


def _reported(outcome: Outcome | None) -> HttpResponse:
    match outcome:
        case Completed():
            return JsonResponse({"status": "done"})
        case AlreadyDone():
            return JsonResponse({"status": "already done"})
        case NotExpected(state):
            return say(HTTPStatus.CONFLICT, f"nothing is to be reported: the job is {state}")
        case None:
            return say(HTTPStatus.NOT_FOUND, "no such job")


def _read(request: HttpRequest) -> _Wanted | Unread:
    body = read_body(request, bytes_max=conf().body_bytes_max)
    if isinstance(body, Unread):
        return body
    try:
        return _wanted(load(body))
    except Unparseable as error:
        return Unread(HTTPStatus.BAD_REQUEST, error.reason)


def _wanted(wanted: JsonValue) -> _Wanted | Unread:
    """Refuse what is misspelt rather than pass over it."""
    if not isinstance(wanted, dict) or (set(wanted) - MEMBERS):
        return Unread(
            HTTPStatus.BAD_REQUEST, f"send an object of {', '.join(sorted(MEMBERS))}"
        )
    kind, asked_by = wanted.get("kind"), wanted.get("asked_by", "")
    if not isinstance(kind, str) or not isinstance(asked_by, str):
        return Unread(HTTPStatus.BAD_REQUEST, "kind and asked_by are text")
    if wanted.get("in_flight", REFUSE) != REFUSE:
        return Unread(HTTPStatus.BAD_REQUEST, f'in_flight is "{REFUSE}", or not given')
    return _Wanted(kind, _plain(wanted.get("payload")), asked_by, "in_flight" in wanted)


def _plain(value: JsonValue) -> Any:
    """Return a value as JSON can write it again; refuse a fraction that a float would round."""
    match value:
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case bool() | int() | str() | None:
            return value
    if Decimal(repr(float(value))) != value:
        raise Unparseable("a fraction has too many digits: send it as text")
    return float(value)


def _answer(taken: Taken, *, refuse_in_flight: bool) -> HttpResponse:
    match taken:
        case Accepted(job_id):
            where = reverse("api-job", args=[job_id])
            said = {"status": "accepted", "job": str(job_id), "state": Job.State.READY}
            return JsonResponse(said, status=HTTPStatus.CREATED, headers={"Location": where})
        case Absorbed(claimant):
            return JsonResponse({"status": "absorbed", "already_applied_by": claimant})
        case Duplicate(state=state) if refuse_in_flight and state in IN_FLIGHT:
            return say(HTTPStatus.CONFLICT, f"the first request of this key is {state}")
        case Duplicate(job_id, state, result):
            job = str(job_id) if job_id else None
            return JsonResponse(
                {"status": "duplicate", "job": job, "state": state, "result": result}
            )
