"""A provider's day, the same for the same seed, with its figures known before anything is sent."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from reliability.proof import incidents
from reliability.proof.cast import KINDS, SOURCES, Effect, Fate, StoryDelivery, StoryEvent
from reliability.proof.daily_statement import rows, written
from reliability.proof.incidents import ORDINARY, Incident, Movement
from reliability.proof.invention import Invention

__all__ = ["KINDS", "SOURCES", "Story", "StoryDelivery", "StoryEvent", "Troubles"]

Facts = dict[str, Any]
# Two tenants' providers may well use the same id: these incidents' first events do.
KEY_SHARED_BY = (incidents.order_paid, incidents.invoice_issued)


@dataclass(frozen=True, kw_only=True)
class Troubles:
    """How many events go wrong on purpose, and how many charges are never sent."""

    failing_charges: int = 0
    express_orders: int = 0
    broken: int = 0
    never_sent: int = 0


@dataclass(frozen=True, kw_only=True)
class Story:
    """A day of `events` distinct events, troubles among them, and what must come of it.

    `repeats_per_hundred` events more are repeats, half of them reformatted. The least `events`
    is the number of troubles that are sent. With 12 ordinary events every incident is there.
    """

    seed: int
    events: int
    day: date
    troubles: Troubles = field(default_factory=Troubles)
    repeats_per_hundred: int = 30

    @cached_property
    def plan(self) -> tuple[StoryEvent, ...]:
        """Every event that is sent, in the order it was written."""
        return tuple(event for incident in self._incidents for event in incident.events)

    @cached_property
    def never_sent(self) -> tuple[StoryEvent, ...]:
        """Events of charges that stand on the statement and are not sent on the day."""
        return tuple(event for incident in self._planted for event in incident.events)

    def deliveries(self, replay: int = 0) -> tuple[StoryDelivery, ...]:
        """Shuffle events and repeats; a replay is another order and leaves the broken out.

        A broken body has no identity, so each delivery of it is new: it is sent once.
        """
        lots = random.Random(f"{self.seed} deliveries {replay}")
        events = [event for event in self.plan if not (replay and event.fate is Fate.BROKEN)]
        whole = [event for event in self.plan if event.fate is not Fate.BROKEN]
        sent = [StoryDelivery(event=event, body=event.body) for event in events]
        for nth, event in enumerate(lots.choices(whole, k=self._repeats) if whole else ()):
            body = reformatted(event.body) if nth % 2 else event.body
            sent.append(StoryDelivery(event=event, body=body, reformatted=bool(nth % 2)))
        lots.shuffle(sent)
        return tuple(sent)

    def late_deliveries(self) -> tuple[StoryDelivery, ...]:
        """List the events that were never sent, should they come after all."""
        return tuple(StoryDelivery(event=event, body=event.body) for event in self.never_sent)

    def expected(self, replays: int = 1) -> Facts:
        """Count from the plan what must be true once all is settled after that many replays.

        `accepted` includes the dead; an absorbed event is a duplicate; `effects` are requests
        that the fake provider lets take effect. Money in minor units by currency.
        """
        sent = sum(len(self.deliveries(replay)) for replay in range(replays))
        works = {event.work: event for event in self.plan}
        repeats, absorbed = sent - len(self.plan), len(self.plan) - len(works)
        fates = Counter(event.fate for event in works.values())
        failed = fates[Fate.FAILS] + fates[Fate.OUTAGE]
        done = [event for event in works.values() if event.fate is Fate.DONE]
        effects = Counter(KINDS[event.kind].effect for event in done)
        return {
            "sent": sent,
            "events": len(self.plan),
            "accepted": len(works),
            "absorbed": absorbed,
            "repeats": repeats,
            "duplicates": repeats + absorbed,
            "operations": sum(event.operation is not None for event in works.values()),
            "done": len(done),
            "dead": {"failed": failed, "unparseable": fates[Fate.BROKEN]},
            "dead_by_kind": self._dead_by_kind(works.values()),
            "effects": effects[Effect.HTTP],
            "effects_by_path": dict(Counter(self._paths(done))),
            "mails": effects[Effect.MAIL],
            "local": effects[Effect.LOCAL],
            **self._statement_figures(),
        }

    def statement_rows(self) -> list[dict[str, str]]:
        """Print the day as rows of Stripe's itemized balance change report, columns by name."""
        return rows(self._movements, seed=f"{self.seed} statement", day=self.day)

    def statement_csv(self) -> bytes:
        """Write the rows as the file that Stripe offers."""
        return written(self.statement_rows())

    @property
    def _repeats(self) -> int:
        return self.events * self.repeats_per_hundred // 100

    @cached_property
    def _incidents(self) -> tuple[Incident, ...]:
        """Troubles first, then one of each ordinary incident while there is room, then lots."""
        invention, troubles = Invention(f"{self.seed} events", self.day), self.troubles
        failing = invention.failing_customer
        written = [
            *(
                incidents.charge(invention, customer=failing, fate=Fate.FAILS)
                for _ in range(troubles.failing_charges)
            ),
            *(
                incidents.express_order_paid(invention, fate=Fate.OUTAGE)
                for _ in range(troubles.express_orders)
            ),
            *(incidents.broken_event(invention) for _ in range(troubles.broken)),
        ]
        room = self.events - len(written)
        if room < 0:
            raise ValueError(f"{self.events} events are fewer than the troubles among them")
        return (*written, *_ordinary(invention, f"{self.seed} plot", room))

    @cached_property
    def _planted(self) -> tuple[Incident, ...]:
        invention = Invention(f"{self.seed} never sent", self.day)
        return tuple(incidents.charge(invention) for _ in range(self.troubles.never_sent))

    @property
    def _movements(self) -> Sequence[Movement]:
        told = (*self._incidents, *self._planted)
        return [movement for incident in told for movement in incident.movements]

    def _statement_figures(self) -> Facts:
        money: Counter[str] = Counter()
        for event in self.never_sent:
            assert event.operation is not None
            money[event.operation.currency] += event.operation.amount_minor
        dead = self.troubles.failing_charges
        return {
            "statement_lines": len(self._movements) + 1,  # and the day's fee
            "out_of_scope": 1,
            "missing": {"never_received": len(self.never_sent), "in_dead_letter": dead},
            "never_received_minor": dict(money),
        }

    @staticmethod
    def _dead_by_kind(works: Iterable[StoryEvent]) -> Facts:
        failing = {Fate.FAILS, Fate.OUTAGE}
        return dict(Counter(event.kind for event in works if event.fate in failing))

    @staticmethod
    def _paths(done: Iterable[StoryEvent]) -> Iterator[str]:
        return (KINDS[event.kind].path for event in done if KINDS[event.kind].path)


def _ordinary(invention: Invention, seed: str, room: int) -> Iterator[Incident]:
    """Fill the room exactly: one of each while it fits, then by weight."""
    lots = random.Random(seed)
    shared = {"key": invention.identifier("evt_two_tenants", 8)}
    for happen, size, _ in ORDINARY:
        if size <= room:
            room -= size
            yield happen(invention, **(shared if happen in KEY_SHARED_BY else {}))
    while room:
        fitting = [(happen, size, weight) for happen, size, weight in ORDINARY if size <= room]
        weights = [weight for _, _, weight in fitting]
        happen, size, _ = lots.choices(fitting, weights=weights)[0]
        room -= size
        yield happen(invention)


def reformatted(body: bytes) -> bytes:
    """Say the same in other bytes: other order, other spacing, Stripe's counter run down."""
    facts = json.loads(body)
    if "pending_webhooks" in facts:
        facts["pending_webhooks"] -= 1
    return json.dumps(dict(reversed(facts.items())), indent=1).encode()
