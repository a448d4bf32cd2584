"""Which operation an event tells of, and what each provider's source starts with."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reliability import currencies
from reliability.claim.body import load
from reliability.claim.presets import (
    PRESETS,
    Acknowledgement,
    MappedOperation,
    map_operation,
)
from reliability.claim.signatures import SCHEMES, configuration_error

NINE = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
SECONDS = 1_796_029_200  # nine o'clock


def operation(*facts: object) -> MappedOperation:
    """Name the facts in the order class, reference, amount, currency, exponent, time."""
    names = ("operation_class", "reference", "amount_minor", "currency", "exponent")
    return MappedOperation(**dict(zip((*names, "occurred_at"), facts, strict=True)))  # type: ignore[arg-type]


def told(preset: str, event_type: str, body: str) -> MappedOperation | None:
    return map_operation(PRESETS[preset].operations, event_type, load(body.encode()))


def stripe(event_type: str, body: str) -> MappedOperation | None:
    return told("stripe", event_type, f'{{"created":{SECONDS},"data":{{"object":{body}}}}}')


CHARGE = operation("charge", "ch_1", 2000, "EUR", 2, NINE)


@pytest.mark.parametrize(
    ("event_type", "body"),
    [
        (
            "charge.succeeded",
            f'{{"id":"ch_1","amount":2000,"currency":"eur","captured":true,"created":{SECONDS}}}',
        ),
        (
            "charge.captured",
            '{"id":"ch_1","amount":2500,"amount_captured":2000,"currency":"eur","created":1}',
        ),
        (
            "payment_intent.succeeded",
            (
                '{"id":"pi_1","latest_charge":"ch_1","amount":2500,"amount_received":2000,'
                '"currency":"eur","created":1}'
            ),
        ),
        (
            "payment_intent.succeeded",
            '{"id":"pi_1","latest_charge":{"id":"ch_1"},"amount":2000,"currency":"eur"}',
        ),
        (
            "payment_intent.succeeded",
            (
                '{"id":"pi_1","charges":{"data":[{"id":"ch_1"},{"id":"ch_0"}]},"amount":2000,'
                '"currency":"eur"}'
            ),
        ),
    ],
)
def test_one_stripe_charge_is_one_operation_whoever_tells_of_it(
    event_type: str, body: str
) -> None:
    assert stripe(event_type, body) == CHARGE


def test_an_authorised_stripe_charge_has_taken_nothing_yet() -> None:
    body = '{"id":"ch_1","amount":2000,"amount_captured":0,"currency":"eur","captured":false}'
    assert stripe("charge.succeeded", body) is None


def test_two_partial_refunds_of_one_stripe_charge_are_two_operations() -> None:
    first = f'{{"id":"re_1","amount":300,"currency":"eur","created":{SECONDS}}}'
    second = f'{{"id":"re_2","amount":500,"currency":"eur","created":{SECONDS}}}'
    charge = '{"id":"ch_1","amount_refunded":%d,"currency":"eur","refunds":{"data":[%s]}}'
    one = operation("refund", "re_1", 300, "EUR", 2, NINE)
    two = operation("refund", "re_2", 500, "EUR", 2, NINE)
    assert stripe("refund.created", first) == one
    assert stripe("charge.refunded", charge % (300, first)) == one
    assert stripe("charge.refunded", charge % (800, f"{second},{first}")) == two


def test_a_stripe_refund_that_is_not_named_is_no_operation() -> None:
    assert stripe("charge.refunded", '{"id":"ch_1","amount_refunded":300}') is None
    assert stripe("charge.refunded", '{"id":"ch_1","refunds":{"data":[]}}') is None


@pytest.mark.parametrize(
    ("event_type", "operation_class", "reference"),
    [("payout.paid", "payout", "po_1"), ("charge.dispute.created", "dispute", "dp_1")],
)
def test_stripe_payouts_and_disputes_are_operations(
    event_type: str, operation_class: str, reference: str
) -> None:
    body = f'{{"id":"{reference}","amount":1100,"currency":"jpy","created":{SECONDS}}}'
    expected = operation(operation_class, reference, 1100, "JPY", 0, NINE)
    assert stripe(event_type, body) == expected


@pytest.mark.parametrize(
    "event_type",
    [
        "customer.updated",
        "invoice.paid",
        "charge.failed",
        "charge.dispute.funds_withdrawn",
        "",
    ],
)
def test_an_event_that_legitimately_repeats_is_no_operation(event_type: str) -> None:
    assert stripe(event_type, '{"id":"x_1","amount":1,"currency":"eur"}') is None


@pytest.mark.parametrize(
    ("preset", "event_type", "body", "expected"),
    [
        (
            "paypal",
            "PAYMENT.CAPTURE.COMPLETED",
            (
                '{"resource":{"id":"C1","create_time":"2026-11-30T09:00:00Z",'
                '"amount":{"value":"7.47","currency_code":"USD"}}}'
            ),
            operation("charge", "C1", 747, "USD", 2, NINE),
        ),
        (
            "paypal",
            "PAYMENT.SALE.REFUNDED",
            (
                '{"create_time":"2026-11-30T09:00:00Z",'
                '"resource":{"id":"R1","amount":{"total":"-1500","currency":"JPY"}}}'
            ),
            operation("refund", "R1", -1500, "JPY", 0, NINE),
        ),
        (
            "paypal",
            "CUSTOMER.DISPUTE.CREATED",
            '{"resource":{"dispute_id":"PP-1","dispute_amount":{"value":"11.5","currency_code":"EUR"}}}',
            operation("dispute", "PP-1", 1150, "EUR", 2, None),
        ),
        (
            "paypal",
            "PAYMENT.PAYOUTS-ITEM.SUCCEEDED",
            '{"resource":{"payout_item_id":"I1","payout_item":{"amount":{"value":"1.0","currency":"USD"}}}}',
            operation("payout", "I1", 100, "USD", 2, None),
        ),
        (
            "adyen",
            "REFUND",
            (
                '{"pspReference":"P2","originalReference":"P1","success":"true",'
                '"eventDate":"2026-11-30T10:00:00+01:00","amount":{"value":1500,"currency":"CLP"}}'
            ),
            operation("refund", "P2", 1500, "CLP", 2, NINE),
        ),
        ("adyen", "REFUND", '{"pspReference":"P2","success":"false"}', None),
        (
            "gocardless",
            "payments.confirmed",
            '{"id":"EV1","created_at":"2026-11-30T09:00:00.000Z","links":{"payment":"PM1"}}',
            operation("charge", "PM1", None, None, None, NINE),
        ),
        ("gocardless", "mandates.created", '{"id":"EV1","links":{"mandate":"MD1"}}', None),
        (
            "shopify",
            "order_transactions/create",
            (
                '{"id":389404469,"kind":"capture","status":"success","amount":"409.94","currency":"CAD",'
                '"processed_at":"2026-11-30T04:00:00-05:00"}'
            ),
            operation("charge", "389404469", 40994, "CAD", 2, NINE),
        ),
        (
            "shopify",
            "order_transactions/create",
            '{"id":1,"kind":"refund","status":"success"}',
            operation("refund", "1", None, None, None, None),
        ),
        (
            "shopify",
            "order_transactions/create",
            '{"id":1,"kind":"refund","status":"failure"}',
            None,
        ),
        (
            "shopify",
            "order_transactions/create",
            '{"id":1,"kind":"void","status":"success"}',
            None,
        ),
        ("github", "push", '{"id":1}', None),
    ],
)
def test_a_provider_names_its_operations(
    preset: str, event_type: str, body: str, expected: MappedOperation | None
) -> None:
    assert told(preset, event_type, body) == expected


def test_stripes_special_currencies_follow_its_manual() -> None:
    wanted = {"JPY": 0, "MGA": 0, "UGX": 2, "ISK": 2, "KWD": 3, "EUR": 2, "HUF": 2}
    assert {currency: currencies.STRIPE[currency] for currency in wanted} == wanted


def test_an_amount_in_a_currency_that_the_provider_does_not_list_is_not_trusted() -> None:
    body = (
        f'{{"id":"ch_1","amount":2000,"currency":"xyz","captured":true,"created":{SECONDS}}}'
    )
    assert stripe("charge.succeeded", body) == operation(
        "charge", "ch_1", None, None, None, NINE
    )


def test_every_scheme_has_a_preset_that_can_be_saved() -> None:
    assert set(PRESETS) == set(SCHEMES)
    for preset in PRESETS.values():
        assert preset.scheme in SCHEMES
        ZoneInfo(preset.zone)
        secret = {"adyen": "ab" * 32}.get(preset.name, "whsec_c2VjcmV0")
        assert (
            configuration_error(preset.scheme, secrets=[secret], options=preset.options)
            is None
        )
        if preset.tolerance is not None:
            assert preset.tolerance == SCHEMES[preset.scheme].tolerance


def test_each_provider_is_answered_in_its_own_way() -> None:
    assert PRESETS["adyen"].acknowledgement == Acknowledgement(202, "[accepted]", 401)
    assert PRESETS["gocardless"].acknowledgement == Acknowledgement(200, None, 498)
    assert PRESETS["stripe"].acknowledgement == Acknowledgement(200, None, 401)


def test_limits_follow_the_provider() -> None:
    assert PRESETS["github"].body_bytes_max == 26_214_400
    assert PRESETS["stripe"].body_bytes_max == 1_048_576
    assert PRESETS["stripe"].tolerance == timedelta(seconds=300)
    assert PRESETS["github"].tolerance is None
