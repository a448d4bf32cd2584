"""Every kind with its sink, its schedule, its worst case against the window, and what waits of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate

from django.db.models import Count

from reliability.checks import pace_of, too_short
from reliability.conf import conf
from reliability.console.access import OperatorRequest, for_tenant
from reliability.handlers import (
    DedupeWindow,
    Kind,
    LocalTransaction,
    ProviderHeader,
    UniqueConstraint,
    find,
    kinds,
    lacks_sink,
)
from reliability.models import AlertRule, DeadLetter, Job, KindPause
from reliability.policy import Backoff, Pace, Policy, WorstCase, worst_case
from reliability.work.limits import in_words, risk_in_words, sink_in_words, ways_of

KEPT_SHARE = 0.9
"""``not_after`` = first sent + window - 10 %, as the claim sets it."""
KINDS_MAX = 500
LEDGER = "Our effect ledger. The mark commits"
WAY_WORDS = {"": "", "webhook": "as a webhook", "enqueued": "as an own job"}


@dataclass(frozen=True)
class Step:
    """One retry: the upper bound of its wait, and of all waits so far."""

    number: int
    wait: timedelta
    so_far: timedelta


@dataclass(frozen=True, kw_only=True)
class Way:
    """One policy of a kind: how an event comes in decides where the kind declares none."""

    words: str
    policy: Policy
    pace: Pace
    window: timedelta | None
    risk: str

    @property
    def steps(self) -> list[Step]:
        waits = self.policy.waits_max() if isinstance(self.policy, Backoff) else []
        sums = accumulate(waits)
        return [Step(n, *one) for n, one in enumerate(zip(waits, sums, strict=True), 1)]

    @property
    def worst(self) -> WorstCase:
        return worst_case(self.policy, self.pace)

    @property
    def crashes(self) -> int:
        """How many crashes S allows for."""
        return self.worst.crashes // (self.pace.lease + self.pace.sweep)

    @property
    def pickups(self) -> int:
        """How many times S lets it wait for a worker."""
        return self.worst.pickups // self.pace.pickup

    @property
    def fits(self) -> bool:
        """Whether the key is remembered for as long as the schedule can take."""
        retries = isinstance(self.policy, Backoff)
        return self.window is None or not retries or self.worst.total <= self.window

    @property
    def said(self) -> str:
        """The policy in words."""
        if not isinstance(self.policy, Backoff):
            return "Run once: no schedule at all"
        jitter = "full jitter" if self.policy.jitter == "full" else "no jitter"
        return f"Backoff, {self.policy.attempts} attempts, {jitter}"

    @property
    def against(self) -> str:
        """S beside the window, in words."""
        total = in_words(self.worst.total)
        if self.window is None:
            return f"{total}; no window to miss"
        if self.fits:
            return f"{total} of {in_words(self.window)}"
        return f"{total} exceeds {in_words(self.window)}"


@dataclass
class Waiting:
    """What of a kind is on the way in one tenant, and how many letters are open."""

    ready: int = 0
    running: int = 0
    held: dict[str, int] = field(default_factory=dict)
    letters: int = 0

    @property
    def held_words(self) -> list[tuple[str, str, int]]:
        return [(held, Job.Hold(held).label, n) for held, n in sorted(self.held.items())]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One kind's row; ``kind`` is ``None`` where no handler of it is known to this process."""

    name: str
    kind: Kind | None
    waiting: Waiting
    pause: KindPause | None

    @property
    def ways(self) -> list[Way]:
        return [] if self.kind is None else list(_ways(self.kind))

    @property
    def refused(self) -> str:
        """Why a start with this kind is refused; empty where it is not."""
        if self.kind is None:
            return ""
        if lacks_sink(self.kind):
            return "It has retries and no sink."
        return too_short(self.kind)

    @property
    def sink(self) -> str:
        return sink_in_words(self.kind) if self.kind else "not known here"

    @property
    def sink_told(self) -> str:
        return sink_told(self.kind) if self.kind else ""

    @property
    def limit(self) -> timedelta:
        declared = self.kind.deadline or self.kind.limit if self.kind else None
        return declared or conf().job_limit

    @property
    def not_after(self) -> timedelta | None:
        """How long after its first sending a job may still start."""
        window = self.kind.window if self.kind else None
        return None if window is None else window * KEPT_SHARE

    @property
    def declared_at(self) -> str:
        """The handler's own name in the code."""
        handle = self.kind.handle if self.kind else None
        name = getattr(handle, "__qualname__", type(handle).__qualname__)
        return f"{handle.__module__}.{name}" if handle else ""


def _ways(kind: Kind) -> Iterator[Way]:
    for way, policy in ways_of(kind).items():
        yield Way(
            words=WAY_WORDS[way],
            policy=policy,
            pace=pace_of(kind, conf()),
            window=kind.window,
            risk=risk_in_words(kind, policy),
        )


def sink_told(kind: Kind) -> str:
    """Say how a repeat of this kind is recognised."""
    match kind.sink:
        case LocalTransaction():
            said = "The handler’s database writes and DONE commit together."
        case UniqueConstraint(model=model, field=name):
            said = f"The insert that violates {model}.{name} is caught; the original result is returned."
        case ProviderHeader(header=header, window=window):
            forgets = f"the provider forgets it after {in_words(window)}."
            said = f"The key goes straight through in {header}; {forgets}"
        case DedupeWindow(record="before"):
            said = f"{LEDGER} first, a crash is never repeated. Risk: may be missing."
        case DedupeWindow():
            repeats = "a crash repeats with the same key. Risk: may repeat."
            said = f"{LEDGER} after the answer, {repeats}"
        case None if lacks_sink(kind):
            said = "Nothing downstream rejects a repeat."
        case _:
            said = "No sink: it runs once; a failure or a crash is a letter, a person decides."
    return said


def every_row(request: OperatorRequest) -> list[Row]:
    """Return the kinds known to this process and those with rows in the tenant, by name."""
    waiting, pauses = _waiting(request), _pauses(request)
    names = {kind.name for kind in kinds()} | set(waiting) | set(pauses)
    return [
        Row(name=name, kind=find(name), waiting=waiting.get(name, Waiting()),
            pause=pauses.get(name))
        for name in sorted(names)[:KINDS_MAX]
    ]  # fmt: skip


def row_of(request: OperatorRequest, name: str) -> Row | None:
    """Return one kind's row; ``None`` for a name nobody knows and the tenant never had."""
    for row in every_row(request):
        if row.name == name:
            return row
    had = for_tenant(request, Job.objects.filter(kind=name)).exists()
    return Row(name=name, kind=None, waiting=Waiting(), pause=None) if had else None


def _waiting(request: OperatorRequest) -> dict[str, Waiting]:
    found: dict[str, Waiting] = {}
    under_way = Job.objects.filter(state__in=[Job.State.READY, Job.State.RUNNING])
    jobs = for_tenant(request, under_way).order_by().values_list("kind", "state", "held")
    for kind, state, held, count in jobs.annotate(Count("pk")):
        one = found.setdefault(kind, Waiting())
        if state == Job.State.RUNNING:
            one.running += count
            continue
        one.ready += count
        if held:
            one.held[held] = count
    letters = for_tenant(request, DeadLetter.objects.open()).order_by().values_list("kind")
    for kind, count in letters.annotate(Count("pk")):
        found.setdefault(kind, Waiting()).letters = count
    return found


def _pauses(request: OperatorRequest) -> dict[str, KindPause]:
    return {one.kind: one for one in for_tenant(request, KindPause.objects.all())}


def owners(request: OperatorRequest) -> list[str]:
    """Name who owns the tenant's alerts on open letters: a kind itself declares no owner."""
    rules = AlertRule.objects.filter(
        enabled=True, measure=AlertRule.Measure.OPEN_LETTERS
    ).exclude(owner="")
    return sorted(set(for_tenant(request, rules).values_list("owner", flat=True)))
