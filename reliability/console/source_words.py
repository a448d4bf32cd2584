"""A source in words: how its provider signs, what its options say, when its statement is due."""

from collections.abc import Iterator
from typing import Any

from reliability.claim.intake import no_answer_after_work
from reliability.models import Source

SCHEMES = {
    "stripe": "an HMAC-SHA256 over time and body, in the header Stripe-Signature",
    "standard-webhooks": "Standard Webhooks: id, time and body, by a shared secret or a public key",
    "github": "an HMAC-SHA256 over the body in X-Hub-Signature-256; the delivery’s id is not signed",
    "generic-hmac": "an HMAC in a header, as the options below say",
    "adyen": "an HMAC-SHA256 in every item of the body, over eight of its fields",
    "gocardless": "an HMAC-SHA256 over the body, in the header Webhook-Signature",
    "paypal": "a certificate of PayPal’s; each event is confirmed by its API before it is worked",
    "shopify": "an HMAC-SHA256 over the body in X-Shopify-Hmac-Sha256; the event’s id is not signed",
}
OPTIONS = {
    "header": "Signature in the header",
    "algorithm": "Algorithm",
    "encoding": "Signature written in",
    "secret_encoding": "Secret written in",
    "prefix": "Signature begins with",
    "tolerance_seconds": "Tolerated clock difference, seconds",
    "id_pointer": "Event id at",
    "id_header": "Event id in the header",
    "type_pointer": "Event type at",
    "type_header": "Event type in the header",
    "time_pointer": "Event time at",
    "time_header": "Event time in the header",
    "timestamp_header": "Signed time in the header",
    "timestamp_separator": "Between signed time and body",
    "allow_sha1": "SHA-1 allowed",
}


def scheme_in_words(source: Source) -> str:
    """Say how the provider of a source signs."""
    return SCHEMES.get(source.scheme, source.scheme)


def options_in_words(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield each option of the scheme with the words for it; an unknown one by its own name."""
    for name, value in sorted(source.options.items()):
        yield OPTIONS.get(name, name), value


def answer_in_words(source: Source) -> str:
    """Say when a delivery is answered, and why it cannot be otherwise where it cannot."""
    if source.answer == Source.Answer.AFTER_WORK:
        return "once its events are worked"
    why = no_answer_after_work(source)
    return "once its events are claimed" + (f", always: {why}" if why else "")


def statement_in_words(source: Source) -> str:
    """Say what is compared and by when its statement is expected; nothing where none is."""
    if not source.statement_kinds:
        return "nothing is compared, no statement is expected"
    kinds = ", ".join(source.statement_kinds)
    hours = source.statement_deadline_hours
    return (
        f"{kinds}; expected within {hours} h of the day’s end, {source.grace_hours} h of grace"
    )
