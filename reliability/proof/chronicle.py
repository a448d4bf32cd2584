"""Several days told together: their deliveries in order, their figures added up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reliability.proof.cast import BILLING, StoryDelivery, StoryOperation
from reliability.proof.story import Story

Facts = dict[str, Any]
LEDGER_COLUMNS = ("id", "kind", "reference", "amount", "currency", "at")


@dataclass(frozen=True)
class Chronicle:
    """Stories of consecutive days, oldest first, each under a seed of its own."""

    days: Sequence[Story]

    @property
    def last(self) -> Story:
        return self.days[-1]

    def deliveries(self) -> list[StoryDelivery]:
        """List every delivery, one day after the other."""
        return [delivery for day in self.days for delivery in day.deliveries()]

    def expected(self) -> Facts:
        """Add up what must be true once all days are settled; a statement's figures stay apart."""
        total: Facts = {}
        for day in self.days:
            total = added(total, day.expected())
        return total


def added(some: Mapping[str, Any], more: Mapping[str, Any]) -> Facts:
    """Add figures name by name, also those that stand below a name."""
    total = dict(some)
    for name, figure in more.items():
        if isinstance(figure, Mapping):
            total[name] = added(total.get(name, {}), figure)
        else:
            total[name] = total.get(name, 0) + figure
    return total


def ledger_csv(story: Story) -> bytes:
    """Write the day of our own billing as its ledger exports it; its last row counts the rows."""
    told = {
        event.work: event.operation for event in story.plan if event.source == BILLING.name
    }
    rows = [_row(one) for one in told.values() if one]
    text = "\n".join([",".join(LEDGER_COLUMNS), *rows, f"ROWS,,,{len(rows)},,", ""])
    return text.encode()


def cut(statement: bytes) -> bytes:
    """Break a file off in a row, behind one of its fields, as a copy that was not finished does."""
    rows = statement.splitlines(keepends=True)
    kept = len(rows) * 2 // 3
    fields = rows[kept].split(b",")
    return b"".join(rows[:kept]) + b",".join(fields[: len(fields) // 2])


def _row(one: StoryOperation) -> str:
    return (
        f"{one.reference}-1,{one.operation_class},{one.reference},{one.amount_minor},"
        f"{one.currency},{one.occurred_at.isoformat()}"
    )
