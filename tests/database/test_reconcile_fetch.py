"""Recovering by asking the provider: its object where it has it, the line where it has not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import time_machine

from reliability.claim.door import forget
from reliability.models import (
    ApiCredential,
    Body,
    Discrepancy,
    Job,
    Operation,
    ProcessedKey,
    Source,
)
from reliability.reconcile.discrepancies import Refusal
from reliability.reconcile.recover import Recovered, recover
from reliability.reconcile.recover_many import WillRecover, outlook, recover_many
from reliability.work.dead_letters import Act
from tests.database import world
from tests.database.days import MORNING_AFTER, Row, a_source, operation, report
from tests.database.elsewhere import Heard, Says, allow_loopback, serving

pytestmark = pytest.mark.django_db

JSON = {"Content-Type": "application/json"}


class StripeApi:
    """Knows some charges, until its window closes or it breaks."""

    def __init__(self) -> None:
        self.status = 200
        self.charges: dict[str, dict[str, Any]] = {"ch_1": a_charge("ch_1")}

    def __call__(self, heard: Heard) -> Says:
        if self.status != 200 or heard.headers["authorization"] != "Bearer rk_test_1":
            return Says(401, json.dumps({"error": {"message": "no such key"}}).encode(), JSON)
        found = self.charges.get(heard.path.rpartition("/")[2])
        if found is None:
            error = {
                "type": "invalid_request_error",
                "code": "resource_missing",
                "message": "No",
            }
            return Says(404, json.dumps({"error": error}).encode(), JSON)
        return Says(200, json.dumps(found).encode(), JSON)


def a_charge(reference: str, amount: int = 1000) -> dict[str, Any]:
    return {
        "id": reference, "object": "charge", "amount": amount, "amount_captured": amount,
        "currency": "eur", "captured": True, "created": 1_791_972_000,
        "metadata": {"order": "4711"},
    }  # fmt: skip


@pytest.fixture
def stripe() -> StripeApi:
    return StripeApi()


@pytest.fixture
def source(stripe: StripeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    forget()
    allow_loopback(monkeypatch)
    with (
        serving(stripe) as place,
        world.local("stripe.charge.succeeded", lambda event: None),
        time_machine.travel(MORNING_AFTER, tick=False),
    ):
        made = a_source(options={"api_url": place.url})
        ApiCredential.keep(made, "rk_test_1")
        yield made


def recovered(source: Source, **options: Any) -> Any:
    act = Act(tenant=source.tenant, actor="mara", reason="never arrived")
    one = Discrepancy.objects.select_related("source").get(source=source)
    return recover(one, act, **options)


def heard(source: Source) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(Body.objects.get().raw))
    return found


def test_the_provider_s_own_object_is_taken_in_under_the_line_s_operation(
    source: Source,
) -> None:
    report(source, Row("ch_1", "10.00"))
    done = recovered(source)
    assert isinstance(done, Recovered), done
    assert done.how == "An event fetched from them was accepted under its operation."
    assert heard(source)["data"]["object"]["metadata"] == {"order": "4711"}
    assert Operation.objects.get().reference == "ch_1"
    assert ProcessedKey.objects.get().key == "recovered:ch_1"


def test_an_object_that_says_another_amount_is_not_taken_in(
    source: Source, stripe: StripeApi
) -> None:
    stripe.charges["ch_1"] = a_charge("ch_1", amount=999)
    report(source, Row("ch_1", "10.00"))
    assert recovered(source) == Refusal(
        "The provider’s object says EUR 9.99, the line EUR 10.00: nothing was taken in."
    )
    assert Job.objects.count() == 0


def test_an_object_of_another_reference_is_not_taken_in(
    source: Source, stripe: StripeApi
) -> None:
    stripe.charges["ch_1"] = a_charge("ch_2")
    report(source, Row("ch_1", "10.00"))
    assert isinstance(recovered(source), Refusal)
    assert Job.objects.count() == 0


def test_a_provider_that_no_longer_has_it_leaves_the_line_to_do(source: Source) -> None:
    report(source, Row("ch_old", "10.00"))
    done = recovered(source)
    assert isinstance(done, Recovered)
    assert "built from the statement’s line" in done.how


def test_a_provider_that_refuses_leaves_it_open_with_the_cause(
    source: Source, stripe: StripeApi
) -> None:
    stripe.status = 401
    report(source, Row("ch_1", "10.00"))
    refused = recovered(source)
    assert isinstance(refused, Refusal)
    assert refused.why == (
        "Stripe said: no such key. It stays open; it can also be recovered from the line."
    )
    assert (Discrepancy.objects.get().status, Job.objects.count()) == ("open", 0)
    assert isinstance(recovered(source, from_line=True), Recovered)


def test_nobody_is_asked_about_what_was_claimed_already(
    source: Source, stripe: StripeApi
) -> None:
    stripe.status = 401
    operation(source, "ch_1", state="dead")
    report(source, Row("ch_1", "10.00"))
    assert isinstance(recovered(source), Recovered)


def test_without_a_credential_nobody_is_asked(source: Source, stripe: StripeApi) -> None:
    stripe.status = 401
    ApiCredential.objects.all().delete()
    report(source, Row("ch_1", "10.00"))
    assert isinstance(recovered(source), Recovered)


def test_of_many_each_is_asked_for_and_what_the_provider_refuses_stays_open(
    source: Source, stripe: StripeApi
) -> None:
    stripe.charges["ch_2"] = a_charge("ch_2", amount=999)
    report(source, Row("ch_1"), Row("ch_2"), Row("ch_old"))
    found = list(Discrepancy.objects.select_related("source", "line__statement__source"))
    looks = [one for one in outlook(source, found, "mara") if isinstance(one, WillRecover)]
    assert [one.how.startswith("fetched from the provider") for one in looks] == [True] * 3
    act = Act(tenant=source.tenant, actor="mara", reason="outage")
    many = recover_many(source, found, act)
    assert {one.reference for one in many.recovered} == {"ch_1", "ch_old"}
    [left] = many.left
    assert (left.discrepancy.reference, left.why) == (
        "ch_2",
        "The provider’s object says EUR 9.99, the line EUR 10.00: nothing was taken in.",
    )
    assert Discrepancy.objects.get(reference="ch_2").status == "open"


# GoCardless: its events only link to an object, so the object's own fields are looked at.


class GoCardlessApi:
    """Knows one payment."""

    def __init__(self) -> None:
        self.payment = {"id": "PM1", "amount": 1000, "currency": "EUR", "status": "paid_out"}
        self.gone = 404

    def __call__(self, heard: Heard) -> Says:
        if heard.path == "/payments/PM1":
            return Says(200, json.dumps({"payments": self.payment}).encode(), JSON)
        error = {
            "code": self.gone,
            "type": "invalid_api_usage",
            "message": "gone",
            "errors": [],
        }
        return Says(self.gone, json.dumps({"error": error}).encode(), JSON)


@pytest.fixture
def payments(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Source, GoCardlessApi]]:
    forget()
    allow_loopback(monkeypatch)
    api = GoCardlessApi()
    with (
        serving(api) as place,
        world.local("gocardless.payments.confirmed", lambda event: None),
        time_machine.travel(MORNING_AFTER, tick=False),
    ):
        made = a_source(
            preset="gocardless", scheme="gocardless", options={"api_url": place.url}
        )
        ApiCredential.keep(made, "tok_test_1")
        yield made, api


def test_a_gocardless_payment_is_taken_in_as_the_event_its_handler_knows(
    payments: tuple[Source, GoCardlessApi],
) -> None:
    source, api = payments
    report(source, Row("PM1", "10.00"))
    done = recovered(source)
    assert isinstance(done, Recovered), done
    assert done.how == "An event fetched from them was accepted under its operation."
    event = heard(source)
    assert (event["resource_type"], event["action"]) == ("payments", "confirmed")
    assert event["links"] == {"payment": "PM1"}
    assert event["recovered"]["object"] == api.payment
    assert Operation.objects.get().reference == "PM1"


def test_a_gocardless_payment_of_another_amount_is_not_taken_in(
    payments: tuple[Source, GoCardlessApi],
) -> None:
    source, api = payments
    api.payment["amount"] = 999
    report(source, Row("PM1", "10.00"))
    assert recovered(source) == Refusal(
        "The provider’s object says EUR 9.99, the line EUR 10.00: nothing was taken in."
    )
    assert Job.objects.count() == 0


@pytest.mark.parametrize("status", [404, 410])
def test_where_gocardless_s_window_has_closed_the_line_has_to_do(
    payments: tuple[Source, GoCardlessApi], status: int
) -> None:
    source, api = payments
    api.gone = status
    report(source, Row("PM_old", "10.00"))
    done = recovered(source)
    assert isinstance(done, Recovered), done
    assert "built from the statement’s line" in done.how
    assert heard(source)["links"] == {"payment": "PM_old"}
