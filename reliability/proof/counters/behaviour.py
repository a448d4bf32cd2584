"""How the fake provider behaves just now, changeable while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """What goes wrong on purpose; a rate is the chance from 0 to 1 that a request is hit.

    Nothing began and nothing is remembered: outage, unavailable (503), error (500), throttle (429).
    Remembered under the key: fail (500), a declined customer (402), all that was accepted.
    """

    outage: bool = False
    outage_paths: Sequence[str] = ("/",)  # the prefixes an outage hits
    mail_outage: bool = False
    unavailable_rate: float = 0.0
    throttle_rate: float = 0.0
    fail_rate: float = 0.0
    error_rate: float = 0.0
    time_out_after_accepting: float = 0.0  # a rate: it takes effect, then the line goes dead
    latency_ms: float = 0.0
    answer_latency_ms: float = 0.0  # between the effect and the answer that tells of it
    key_check: bool = True
    window_seconds: float = 24 * 3600.0
    declined_customers: Sequence[str] = ()


def changed(behaviour: Behaviour, wishes: Mapping[str, Any]) -> Behaviour:
    """Replace the named fields; ValueError names an unknown field or a wrong value."""
    known = {field.name for field in fields(behaviour)}
    for name, value in wishes.items():
        if name not in known or not _fits(getattr(behaviour, name), value):
            raise ValueError(f"no such control or value: {name}={value!r}")
    return replace(behaviour, **wishes)


def _fits(now: object, wish: object) -> bool:
    if isinstance(now, bool) or isinstance(wish, bool):
        return isinstance(now, bool) and isinstance(wish, bool)
    if isinstance(now, float):
        return isinstance(wish, int | float) and wish >= 0
    return isinstance(wish, list | tuple) and all(isinstance(item, str) for item in wish)
