"""The story is the same for its seed, and its figures are what its events amount to."""

import csv
import json
from base64 import b64encode
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import standardwebhooks
import stripe as stripe_sdk

from reliability.claim.body import load
from reliability.claim.operations import OperationRule, map_operation
from reliability.claim.presets import PRESETS
from reliability.claim.signatures import Verified, identities, verify
from reliability.proof.cast import KINDS, SOURCES, Fate, StoryDelivery, StorySource
from reliability.proof.daily_statement import major
from reliability.proof.signing import signed_headers, standard_webhooks, stripe
from reliability.proof.story import Story, Troubles, reformatted

DAY = date(2026, 11, 29)
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
SECRETS = {
    "stripe": "whsec_story_0123456789abcdef",
    "standard-webhooks": "whsec_" + b64encode(bytes(range(32))).decode(),
    "generic-hmac": "story-secret-of-the-own-sender",
}
TROUBLES = Troubles(failing_charges=3, express_orders=2, broken=1, never_sent=4)
TINY = Story(seed=7, events=12, day=DAY, repeats_per_hundred=50)
BUSY = Story(seed=7, events=200, day=DAY, troubles=TROUBLES)


def by_name(name: str) -> StorySource:
    return next(source for source in SOURCES if source.name == name)


def test_a_story_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    again = Story(seed=7, events=200, day=DAY, troubles=TROUBLES)
    other = Story(seed=8, events=200, day=DAY, troubles=TROUBLES)
    assert again.plan == BUSY.plan
    assert again.deliveries(2) == BUSY.deliveries(2)
    assert again.statement_csv() == BUSY.statement_csv()
    assert again.expected(3) == BUSY.expected(3)
    assert other.plan != BUSY.plan
    assert not {event.key for event in other.plan} & {event.key for event in BUSY.plan}


def test_a_tiny_story_has_the_figures_counted_by_hand() -> None:
    # One of each: charge; charge told twice; charge, refund told twice, second refund; customer;
    # order; stock; invoice; receipt. Two events tell what another told already.
    assert Counter(event.kind for event in TINY.plan) == {
        "stripe.charge.succeeded": 3,
        "stripe.payment_intent.succeeded": 1,
        "stripe.charge.refunded": 1,
        "stripe.refund.created": 2,
        "stripe.customer.updated": 1,
        "standard-webhooks.order.paid": 1,
        "standard-webhooks.stock.changed": 1,
        "generic-hmac.invoice.issued": 1,
        "generic-hmac.receipt.due": 1,
    }
    assert TINY.expected() == {
        "sent": 18,
        "events": 12,
        "accepted": 10,
        "absorbed": 2,
        "repeats": 6,
        "duplicates": 8,
        "operations": 8,
        "done": 10,
        "dead": {"failed": 0, "unparseable": 0},
        "dead_by_kind": {},
        "effects": 7,
        "effects_by_path": {
            "/v1/credits": 3,
            "/v1/reversals": 2,
            "/v1/shipments": 1,
            "/v1/postings": 1,
        },
        "mails": 1,
        "local": 2,
        "statement_lines": 6,
        "out_of_scope": 1,
        "missing": {"never_received": 0, "in_dead_letter": 0},
        "never_received_minor": {},
    }


def test_troubles_die_as_planned_and_the_rest_is_done() -> None:
    story = Story(seed=3, events=18, day=DAY, troubles=TROUBLES)
    expected = story.expected()
    assert expected["events"] == 18
    assert expected["accepted"] == 16
    assert expected["dead"] == {"failed": 5, "unparseable": 1}
    assert expected["dead_by_kind"] == {
        "stripe.charge.succeeded": 3,
        "standard-webhooks.order.express_paid": 2,
    }
    assert expected["done"] == 10
    assert expected["effects"] == 7
    assert expected["missing"] == {"never_received": 4, "in_dead_letter": 3}


def test_replays_send_more_and_change_nothing_else() -> None:
    once, thrice = BUSY.expected(1), BUSY.expected(3)
    # 200 events and 60 repeats; a replay leaves the one broken event out.
    assert once["sent"] == 260
    assert thrice["sent"] == 260 + 259 + 259
    assert thrice["duplicates"] == once["duplicates"] + 518
    changing = {"sent", "repeats", "duplicates"}
    assert {k: v for k, v in once.items() if k not in changing} == {
        k: v for k, v in thrice.items() if k not in changing
    }


def test_fewer_events_than_troubles_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer than the troubles"):
        _ = Story(seed=1, events=5, day=DAY, troubles=TROUBLES).plan


@pytest.mark.parametrize("events", [0, 1, 2, 3, 5, 13, 100])
def test_a_story_has_exactly_as_many_events_as_asked(events: int) -> None:
    story = Story(seed=1, events=events, day=DAY)
    assert len(story.plan) == events
    assert len(story.deliveries()) == events + events * 30 // 100


def test_each_event_is_delivered_and_each_replay_has_an_order_of_its_own() -> None:
    for replay in (0, 1):
        keys = [delivery.event.key for delivery in BUSY.deliveries(replay)]
        whole = {event.key for event in BUSY.plan if event.fate is not Fate.BROKEN}
        assert whole <= set(keys)
    orders = {tuple(d.event.key for d in BUSY.deliveries(replay)) for replay in (0, 1, 2)}
    assert len(orders) == 3


def test_a_broken_event_is_sent_once_and_never_again() -> None:
    broken = [d for d in BUSY.deliveries(0) if d.event.fate is Fate.BROKEN]
    assert len(broken) == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken[0].body)
    assert not [d for d in BUSY.deliveries(1) if d.event.fate is Fate.BROKEN]


def test_half_of_the_repeats_say_the_same_in_other_bytes() -> None:
    changed = [d for d in BUSY.deliveries() if d.reformatted]
    assert len(changed) == 30
    for delivery in changed:
        assert delivery.body != delivery.event.body
        said, first = json.loads(delivery.body), json.loads(delivery.event.body)
        assert said | {"pending_webhooks": 0} == first | {"pending_webhooks": 0}
    assert reformatted(b'{"a":1,"pending_webhooks":2}') == (
        b'{\n "pending_webhooks": 1,\n "a": 1\n}'
    )


def test_two_tenants_use_the_same_event_id_for_different_work() -> None:
    shop = {event.key for event in BUSY.plan if event.source == "borealis-shop"}
    billing = {event.key for event in BUSY.plan if event.source == "acme-billing"}
    assert len(shop & billing) == 1
    assert by_name("borealis-shop").tenant != by_name("acme-billing").tenant


def test_partial_refunds_are_less_than_their_charge_and_come_after_it() -> None:
    charges = {
        event.operation.reference: event.operation
        for event in BUSY.plan
        if event.operation and event.operation.operation_class == "charge"
    }
    refunds = {
        (json.loads(event.body)["data"]["object"]["charge"], event.operation.reference): (
            event.operation
        )
        for event in BUSY.plan
        if event.event_type == "refund.created" and event.operation
    }
    assert len(refunds) >= 2
    given_back = Counter[str]()
    for (charge, _), refund in refunds.items():
        given_back[charge] += refund.amount_minor
        assert refund.occurred_at > charges[charge].occurred_at
        assert refund.occurred_at.date() == DAY
    assert all(amount < charges[charge].amount_minor for charge, amount in given_back.items())


def sent(delivery: StoryDelivery) -> dict[str, str]:
    return signed_headers(delivery, secret=SECRETS[delivery.event.scheme], now=NOW)


def test_every_delivery_is_accepted_at_the_door_under_its_key_and_type() -> None:
    for delivery in BUSY.deliveries():
        event = delivery.event
        options = PRESETS[event.scheme].options
        verdict = verify(
            event.scheme,
            body=delivery.body,
            headers=sent(delivery),
            secrets=[SECRETS[event.scheme]],
            url="",
            now=NOW,
            options=options,
        )
        assert isinstance(verdict, Verified)
        if event.fate is Fate.BROKEN:
            continue
        named = identities(
            event.scheme, body=delivery.body, headers=sent(delivery), options=options
        )
        assert isinstance(named, list)
        assert [(one.key, one.event_type) for one in named] == [(event.key, event.event_type)]


def test_the_sources_rules_read_the_operation_each_event_tells_of() -> None:
    exponents = {"EUR": 2, "GBP": 2, "USD": 2, "JPY": 0}
    for delivery in BUSY.deliveries():
        event = delivery.event
        if event.fate is Fate.BROKEN:
            continue
        rules = [
            *PRESETS[event.scheme].operations,
            *(OperationRule(**rule) for rule in by_name(event.source).operations),  # type: ignore[arg-type]
        ]
        found = map_operation(rules, event.event_type, load(delivery.body))
        told = event.operation
        assert (found is None) == (told is None)
        if found is None or told is None:
            continue
        assert found.operation_class == told.operation_class
        assert found.reference == told.reference
        assert (found.amount_minor, found.currency) == (told.amount_minor, told.currency)
        assert found.exponent == exponents[told.currency]


def test_providers_own_libraries_accept_our_signatures() -> None:
    body = b'{"id": "evt_1", "object": "event", "type": "x"}'
    seconds = int(datetime.now(UTC).timestamp())
    header = stripe(body, secret=SECRETS["stripe"], seconds=seconds)["Stripe-Signature"]
    assert stripe_sdk.WebhookSignature.verify_header(
        body.decode(), header, SECRETS["stripe"], tolerance=300
    )
    secret = SECRETS["standard-webhooks"]
    headers = standard_webhooks("msg_1", body, secret, seconds=seconds)
    oracle = standardwebhooks.Webhook(secret)
    assert oracle.verify(body, dict(headers)) == json.loads(body)


def test_a_scheme_without_a_sender_is_refused() -> None:
    event = type(TINY.plan[0])(**vars(TINY.plan[0]) | {"scheme": "adyen"})
    with pytest.raises(ValueError, match="no sender for adyen"):
        signed_headers(StoryDelivery(event=event, body=b""), secret="s", now=NOW)


def test_every_kind_of_the_plan_has_its_work_described() -> None:
    assert {event.kind for event in BUSY.plan} == set(KINDS)


def statement(story: Story) -> list[dict[str, str]]:
    return list(csv.DictReader(story.statement_csv().decode().splitlines()))


def test_the_statement_holds_all_stripe_operations_and_only_the_planted_more() -> None:
    told = {
        event.operation.reference
        for event in BUSY.plan
        if event.operation and event.source == "acme-stripe"
    }
    planted = {event.operation.reference for event in BUSY.never_sent if event.operation}
    printed = {row["source_id"] for row in statement(BUSY) if row["source_id"]}
    assert len(planted) == 4
    assert printed - told == planted
    assert told - printed == set()
    late = [delivery.event.key for delivery in BUSY.late_deliveries()]
    assert late == [event.key for event in BUSY.never_sent]
    assert not set(late) & {delivery.event.key for delivery in BUSY.deliveries()}


def test_the_statement_foots_and_prints_each_amount_as_the_event_tells_it() -> None:
    told = {e.operation.reference: e.operation for e in BUSY.plan if e.operation}
    lines = statement(BUSY)
    assert len({row["balance_transaction_id"] for row in lines}) == len(lines)
    for row in lines:
        assert Decimal(row["gross"]) - Decimal(row["fee"]) == Decimal(row["net"])
        assert row["created_utc"].startswith("2026-11-29 ")
        operation = told.get(row["source_id"])
        if operation is None:
            continue
        decimals = 0 if operation.currency == "JPY" else 2
        facing = Decimal(row["customer_facing_amount"]).scaleb(decimals)
        assert facing == operation.amount_minor
        assert row["customer_facing_currency"].upper() == operation.currency
        assert row["currency"].upper() == operation.currency.replace("JPY", "EUR")
        assert (Decimal(row["gross"]) < 0) == (row["reporting_category"] == "refund")
    assert BUSY.expected()["statement_lines"] == len(lines)


def test_the_never_received_money_is_the_planted_charges_sum() -> None:
    planted = {event.operation.reference for event in BUSY.never_sent if event.operation}
    sums = Counter[str]()
    for row in statement(BUSY):
        if row["source_id"] in planted:
            currency = row["customer_facing_currency"].upper()
            decimals = 0 if currency == "JPY" else 2
            sums[currency] += int(Decimal(row["customer_facing_amount"]).scaleb(decimals))
    assert BUSY.expected()["never_received_minor"] == dict(sums)


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (0, "EUR", "0.00"),
        (5, "EUR", "0.05"),
        (-5, "GBP", "-0.05"),
        (1234, "USD", "12.34"),
        (-1234, "JPY", "-1234"),
        (7, "JPY", "7"),
    ],
)
def test_minor_units_are_printed_in_major_ones(minor: int, currency: str, text: str) -> None:
    assert major(minor, currency) == text
