"""What the story's kinds do: ask the fake provider, send a mail, or owe a mail to somebody.

Imported where RELIABILITY_HANDLERS names it, and nowhere else: by the demo and by the proof.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.mail import EmailMessage

from reliability import Backoff, Event, LocalTransaction, ProviderHeader, RunOnce, handler
from reliability.claim.enqueue import enqueue
from reliability.handlers import Handle
from reliability.models import Tenant
from reliability.proof import provider_line
from reliability.proof.cast import KINDS, Effect, StoryKind
from reliability.proof.invention import FAILING_CUSTOMER
from reliability.proof.mails import FOLLOW_UP, STORY_HEADER, message_id

SOON = Backoff(first=timedelta(milliseconds=100), cap=timedelta(seconds=1), attempts=8)
DESK = "desk@example.com"


class CustomerFrozen(Exception):
    """This customer's account takes no bookings: what goes wrong on purpose."""


def ask_provider(path: str, event: Event) -> Any:
    """Ask for the effect of one operation; two events that tell of it ask for the same."""
    asked = parameters(event)
    if asked.get("customer") == FAILING_CUSTOMER:
        raise CustomerFrozen(f"the account of {FAILING_CUSTOMER} takes no bookings")
    return provider_line.post(path, key=str(event.downstream_key), parameters=asked)["id"]


def parameters(event: Event) -> dict[str, Any]:
    """Say what is asked for, from the payload alone; `operation` names it for the counters."""
    match event.kind:
        case "stripe.charge.succeeded":
            told = event.payload["data"]["object"]
            return _asked(event, told["id"], told["amount_captured"], told)
        case "stripe.payment_intent.succeeded":
            told = event.payload["data"]["object"]
            return _asked(event, told["latest_charge"], told["amount_received"], told)
        case "stripe.charge.refunded":
            told = event.payload["data"]["object"]["refunds"]["data"][0]
            return _asked(event, told["id"], told["amount"], told)
        case "stripe.refund.created":
            told = event.payload["data"]["object"]
            return _asked(event, told["id"], told["amount"], told)
        case _:
            told = event.payload["data"]
            name = told.get("order_id") or told["invoice_id"]
            return _asked(event, name, told["amount_minor"], told)


def _asked(event: Event, name: str, amount_minor: int, told: dict[str, Any]) -> dict[str, Any]:
    return {
        "operation": f"{event.source} {name}",
        "amount_minor": amount_minor,
        "currency": told["currency"].upper(),
        "customer": told.get("customer") or "",
    }


def mail_receipt(event: Event) -> None:
    """Send the receipt to the customer."""
    told = event.payload["data"]
    words = f"{told['amount_minor']} {told['currency']} (minor units), thank you."
    send(event, f"Receipt {told['receipt_id']}", words, to=told["email"])


def owe_follow_up(event: Event) -> None:
    """Write down, in the same transaction as DONE, that somebody is to be told of a change."""
    told = event.payload["data"]
    about = told.get("object", told)
    note = {
        "subject": f"{event.kind.rpartition('.')[0]} changed ({event.key})",
        "words": str(about.get("left", about.get("name", ""))),
        "to": about.get("email", DESK),
    }
    tenant = Tenant.objects.get(slug=event.tenant)
    enqueue(FOLLOW_UP, key=event.child("mail"), tenant=tenant, payload=note)


def mail_follow_up(event: Event) -> None:
    """Send what another event's handler owed."""
    note = event.payload
    send(event, note["subject"], note["words"], to=note["to"])


def send(event: Event, subject: str, words: str, *, to: str) -> None:
    """Send one mail under an id that every attempt at it would bear."""
    headers = {"Message-ID": message_id(event.downstream_key), STORY_HEADER: event.kind}
    EmailMessage(subject, words, "story@example.com", [to], headers=headers).send()


def _handle(kind: StoryKind) -> Handle:
    handlers: dict[Effect, Handle] = {
        Effect.HTTP: partial(ask_provider, kind.path),
        Effect.MAIL: mail_receipt,
        Effect.LOCAL: owe_follow_up,
    }
    return handlers[kind.effect]


def _register() -> None:
    for name, kind in KINDS.items():
        _declare(name, kind)(_handle(kind))
    handler(FOLLOW_UP, policy=RunOnce())(mail_follow_up)


def _declare(name: str, kind: StoryKind) -> Callable[[Handle], Handle]:
    match kind.effect:
        case Effect.HTTP:
            return handler(name, sink=ProviderHeader(), policy=SOON)
        case Effect.LOCAL:
            return handler(name, sink=LocalTransaction(), policy=SOON)
        case Effect.MAIL:
            return handler(name, policy=RunOnce())


_register()


UNTIL = "wait.until"


@handler(UNTIL, sink=LocalTransaction())
def wait_until(event: Event) -> None:
    """Hold the worker until a moment that the payload names; after it, be done at once."""
    time.sleep(max(0.0, event.payload["until"] - time.time()))
