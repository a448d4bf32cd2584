"""Why nobody is told of an alert, in words."""

from typing import TYPE_CHECKING, Protocol

from reliability.console.parts import number
from reliability.models import Alert

if TYPE_CHECKING:
    from datetime import datetime

Withheld = Alert.Withheld


class Withholding(Protocol):
    """An alert's row, or what a rule sees now."""

    @property
    def withheld(self) -> str: ...
    @property
    def withheld_until(self) -> "datetime | None": ...
    @property
    def value(self) -> int: ...
    @property
    def uncounted(self) -> int: ...


def in_words(of: Withholding, *, counts: bool) -> str:
    """Say what keeps an alert from being told; empty where nothing does.

    ``counts`` tells that its value is a number of letters.
    """
    part = f"{number(of.uncounted)} of {number(of.value)}" if counts else "part of it"
    match of.withheld:
        case Withheld.SILENCED:
            until = of.withheld_until
            ends = f" until {until:%a} {until.day} {until:%b %H:%M} UTC" if until else ""
            return f"silenced{ends}: nobody is told before it ends"
        case Withheld.DRAINING:
            return "a running redrive drains it: judged again once that ends"
        case Withheld.MUTED:
            return f"muted: {part} count for no delivery"
        case _:
            return f"{part} muted, told all the same" if of.uncounted else ""
