"""What each provider's source starts with: scheme, operations, tolerance, answer, statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from reliability.claim.operations import OperationRule, map_operation
from reliability.handlers import MappedOperation

__all__ = [
    "PRESETS",
    "Acknowledgement",
    "MappedOperation",
    "OperationRule",
    "Preset",
    "map_operation",
]

BODY_BYTES_MAX = 1024 * 1024
# GitHub caps its payloads at 25 MB and drops larger ones.
GITHUB_BODY_BYTES_MAX = 25 * 1024 * 1024
FIVE_MINUTES = timedelta(minutes=5)
# PayPal resends for three days; whether a resend carries a new time is not documented.
PAYPAL_TOLERANCE = timedelta(days=3, hours=1)


@dataclass(frozen=True)
class Acknowledgement:
    """How to answer: statuses for taken in and for refused; a body where one is expected."""

    status: int = 200
    body: str | None = None
    refused_status: int = 401


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A source's defaults; ``tolerance`` is ``None`` where no time is signed.

    ``statement_format`` names a reader of the daily statement, ``zone`` the provider's day.
    """

    name: str
    scheme: str
    options: Mapping[str, object] = field(default_factory=dict)
    operations: Sequence[OperationRule] = ()
    tolerance: timedelta | None = None
    acknowledgement: Acknowledgement = Acknowledgement()
    statement_format: str | None = None
    zone: str = "UTC"
    body_bytes_max: int = BODY_BYTES_MAX
    no_answer_after_work: str = ""
    """Why a delivery cannot be answered only after its work; empty where it can."""


def _stripe(event_type: str, operation_class: str, **pointers: Sequence[str]) -> OperationRule:
    """Build a rule on the event's object, with ``amount`` and ``created`` unless told otherwise."""
    paths = {
        "reference": ["id"],
        "amount": ["amount"],
        "currency": ["currency"],
        "occurred_at": ["created"],
        **pointers,
    }
    at = {what: [_in_object(path) for path in found] for what, found in paths.items()}
    return OperationRule(
        event_type=event_type,
        operation_class=operation_class,
        reference=at["reference"],
        amount=at["amount"],
        currency=at["currency"],
        occurred_at=at["occurred_at"],
        exponents="stripe",
        # An authorised charge has taken nothing yet; charge.captured will tell of it.
        unless=[("/data/object/captured", False)] if operation_class == "charge" else (),
    )


def _in_object(path: str) -> str:
    return path if path.startswith("/") else f"/data/object/{path}"


# One charge is told by up to three events. A payment intent is created long before it
# succeeds, so its event's own time is nearer to the charge's.
STRIPE_OPERATIONS = (
    _stripe("charge.succeeded", "charge", amount=["amount_captured", "amount"]),
    _stripe(
        "charge.captured",
        "charge",
        amount=["amount_captured", "amount"],
        occurred_at=["/created"],
    ),
    _stripe(
        "payment_intent.succeeded",
        "charge",
        reference=["latest_charge/id", "latest_charge", "charges/data/0/id"],
        amount=["amount_received", "amount"],
        occurred_at=["/created"],
    ),
    _stripe("refund.created", "refund"),
    # The list is newest first; the charge's own amount_refunded is a running total.
    _stripe(
        "charge.refunded",
        "refund",
        reference=["refunds/data/0/id"],
        amount=["refunds/data/0/amount"],
        currency=["refunds/data/0/currency"],
        occurred_at=["refunds/data/0/created"],
    ),
    _stripe("payout.paid", "payout"),
    _stripe("charge.dispute.created", "dispute"),
)

PAYPAL_AMOUNT = ("/resource/amount/value", "/resource/amount/total")
PAYPAL_CURRENCY = ("/resource/amount/currency_code", "/resource/amount/currency")


def _paypal(event_type: str, operation_class: str) -> OperationRule:
    """Build a rule on a sale, capture or refund in its version 2 or version 1 shape."""
    return OperationRule(
        event_type=event_type,
        operation_class=operation_class,
        reference=["/resource/id"],
        amount=PAYPAL_AMOUNT,
        currency=PAYPAL_CURRENCY,
        occurred_at=["/resource/create_time", "/create_time"],
        amount_unit="major",
        exponents="paypal",
    )


PAYPAL_OPERATIONS = (
    _paypal("PAYMENT.CAPTURE.COMPLETED", "charge"),
    _paypal("PAYMENT.SALE.COMPLETED", "charge"),
    _paypal("PAYMENT.CAPTURE.REFUNDED", "refund"),
    _paypal("PAYMENT.SALE.REFUNDED", "refund"),
    OperationRule(
        event_type="PAYMENT.PAYOUTS-ITEM.SUCCEEDED",
        operation_class="payout",
        reference=["/resource/payout_item_id"],
        amount=["/resource/payout_item/amount/value"],
        currency=["/resource/payout_item/amount/currency"],
        occurred_at=["/resource/time_processed"],
        amount_unit="major",
        exponents="paypal",
    ),
    OperationRule(
        event_type="CUSTOMER.DISPUTE.CREATED",
        operation_class="dispute",
        reference=["/resource/dispute_id"],
        amount=["/resource/dispute_amount/value"],
        currency=["/resource/dispute_amount/currency_code"],
        occurred_at=["/resource/create_time"],
        amount_unit="major",
        exponents="paypal",
    ),
)


def _adyen(event_type: str, operation_class: str) -> OperationRule:
    """Build a rule on one notification item: each modification has a reference of its own."""
    return OperationRule(
        event_type=event_type,
        operation_class=operation_class,
        reference=["/pspReference"],
        amount=["/amount/value"],
        currency=["/amount/currency"],
        occurred_at=["/eventDate"],
        exponents="adyen",
        only_if=[("/success", "true")],
    )


ADYEN_OPERATIONS = (
    _adyen("AUTHORISATION", "authorisation"),
    _adyen("CAPTURE", "capture"),
    _adyen("REFUND", "refund"),
    _adyen("CHARGEBACK", "dispute"),
    _adyen("PAYOUT_THIRDPARTY", "payout"),
)


def _gocardless(event_type: str, operation_class: str, link: str) -> OperationRule:
    """Build a rule on one event, which names the object it is about but no amount."""
    return OperationRule(
        event_type=event_type,
        operation_class=operation_class,
        reference=[f"/links/{link}"],
        occurred_at=["/created_at"],
    )


GOCARDLESS_OPERATIONS = (
    _gocardless("payments.confirmed", "charge", "payment"),
    _gocardless("refunds.created", "refund", "refund"),
    _gocardless("payments.charged_back", "dispute", "payment"),
    _gocardless("payouts.paid", "payout", "payout"),
)


def _shopify(kind: str, operation_class: str) -> OperationRule:
    """Build a rule on an order's successful transactions of one kind."""
    return OperationRule(
        event_type="order_transactions/create",
        operation_class=operation_class,
        reference=["/id"],
        amount=["/amount"],
        currency=["/currency"],
        occurred_at=["/processed_at", "/created_at"],
        amount_unit="major",
        only_if=[("/kind", kind), ("/status", "success")],
    )


SHOPIFY_OPERATIONS = (
    _shopify("sale", "charge"),
    _shopify("capture", "charge"),
    _shopify("refund", "refund"),
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            Preset(
                name="stripe",
                scheme="stripe",
                operations=STRIPE_OPERATIONS,
                tolerance=FIVE_MINUTES,
                statement_format="stripe-balance-csv",
            ),
            Preset(
                name="standard-webhooks", scheme="standard-webhooks", tolerance=FIVE_MINUTES
            ),
            Preset(
                name="github",
                scheme="github",
                body_bytes_max=GITHUB_BODY_BYTES_MAX,
                no_answer_after_work="GitHub never sends a refused delivery again",
            ),
            Preset(
                name="generic-hmac",
                scheme="generic-hmac",
                options={
                    "header": "X-Signature",
                    "algorithm": "sha256",
                    "encoding": "hex",
                    "id_pointer": "/id",
                    "type_pointer": "/type",
                },
            ),
            Preset(
                name="adyen",
                scheme="adyen",
                operations=ADYEN_OPERATIONS,
                # Adyen waits for these words and holds its queue back until they come.
                acknowledgement=Acknowledgement(status=202, body="[accepted]"),
                no_answer_after_work="Adyen's queue waits behind the oldest refusal",
                statement_format="adyen-settlement-csv",
                zone="Europe/Amsterdam",
            ),
            Preset(
                name="gocardless",
                scheme="gocardless",
                operations=GOCARDLESS_OPERATIONS,
                acknowledgement=Acknowledgement(refused_status=498),
                statement_format="gocardless-payout-items",
                zone="Europe/London",
            ),
            Preset(
                name="paypal",
                scheme="paypal",
                operations=PAYPAL_OPERATIONS,
                tolerance=PAYPAL_TOLERANCE,
                no_answer_after_work="PayPal must be asked before an event is worked",
                statement_format="mapped-csv",
                zone="America/Los_Angeles",
            ),
            Preset(
                name="shopify",
                scheme="shopify",
                no_answer_after_work="Shopify drops a subscription after eight failures",
                operations=SHOPIFY_OPERATIONS,
                statement_format="mapped-csv",
            ),
        )
    }
)
