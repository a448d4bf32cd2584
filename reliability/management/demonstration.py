"""The demo's three days: sent through the real door, a worker group killed, compared, and worked on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from reliability.management.aftermath import (
    AFTERMATH,
    aftermath,
    decide_letters,
    note_causes,
    run_redrives,
    wait_for_the_afternoon,
)
from reliability.management.bookkeeping import (
    BOOKS,
    books,
    close_the_books,
    compare_days,
    expected_missing,
)
from reliability.management.furnishing import FURNITURE, furnish, furniture, send_on
from reliability.management.progress import Bar, bar, say
from reliability.management.stage import Stage
from reliability.management.trial import yesterday
from reliability.models import Alert
from reliability.proof.afternoon import OUTAGE_PATHS, Afternoon
from reliability.proof.cast import OUTAGE_PATH, Fate, StoryDelivery
from reliability.proof.chronicle import Chronicle
from reliability.proof.faults import Killed, Killer
from reliability.proof.observe import observe
from reliability.proof.plan import Kill
from reliability.proof.post import Answered
from reliability.proof.settle import Settled, settle
from reliability.proof.story import Story, Troubles
from reliability.proof.verdict import Check, checks, figures

TROUBLES = Troubles(failing_charges=40, express_orders=30, broken=3, never_sent=12)
"""Yesterday's: enough to open an alert."""
EARLIER = (Troubles(), Troubles(failing_charges=6, express_orders=8, never_sent=2))
"""Those of the days before: the first has none."""
EARLIER_EVENTS = 120
SEEDS_APART = 1_000_000
SETTLE_SECONDS = 60
LATENCY_MS, ANSWER_LATENCY_MS = 5.0, 60.0
EXPECTED_FILE = "expected.json"
PEOPLES_WORK = AFTERMATH | BOOKS | FURNITURE
"""What the pages must show of it."""
Facts = dict[str, Any]


@dataclass(frozen=True)
class Day:
    """What came of the day, beside what had been told."""

    expected: Mapping[str, Any]
    found: Mapping[str, Any]
    killed: Killed

    @property
    def checks(self) -> list[Check]:
        """Every figure that was told, every promise, and that the sweep found what was killed."""
        swept = self.found["rescued_by_the_sweep"] + self.found["buried_by_the_sweep"] > 0
        group = self.killed.target.startswith("group ")
        return [
            *checks(self.expected, self.found),
            Check("a worker group was killed half way", expected=True, found=group),
            Check("the sweep found what it had begun", expected=True, found=swept),
        ]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def facts(self) -> Facts:
        """Return it as JSON can say it: what was found, and what had been told beside it."""
        return {
            "ok": self.ok,
            **self.found,
            "killed": self.killed.facts(),
            "expected": dict(self.expected),
            "failed": [check.facts() for check in self.checks if not check.ok],
        }


def chronicle_of(seed: int, events: int) -> Chronicle:
    """Write yesterday and the two days before it; `events` are yesterday's."""
    last, told = yesterday(), []
    for number, troubles in enumerate((*EARLIER, TROUBLES)):
        many = events if troubles is TROUBLES else EARLIER_EVENTS
        day = last - timedelta(days=len(EARLIER) - number)
        of_its_own = seed + number * SEEDS_APART
        told.append(Story(seed=of_its_own, events=many, day=day, troubles=troubles))
    return Chronicle(told)


def play(played: Stage, told: Chronicle, passwords: Mapping[str, str]) -> Day:
    """Write down what must come of the days, send them, settle, compare, and let people work."""
    expected = {**figures(told.expected()), "missing": expected_missing(told.last)}
    days = [str(story.day) for story in told.days]
    text = json.dumps({"days": days, **expected, "work": PEOPLES_WORK}, indent=1)
    (played.folder / EXPECTED_FILE).write_text(text)
    played.sink.control(outage=True, outage_paths=[OUTAGE_PATH])
    played.sink.control(answer_latency_ms=ANSWER_LATENCY_MS)
    answers, killed = _send(played, told.deliveries())
    settled = _settle(played)
    found = observe(played.sink, answers) | {
        "left": settled.left,
        "unknown_resolved": settled.resolved,
        "unknown_requeued": settled.requeued,
        "missing": compare_days(played.folder, told),
        "alerts_opened": Alert.objects.exclude(opened_at=None).count(),
    }
    found["work"] = _work(played, told, passwords)
    return Day({**expected, "work": PEOPLES_WORK}, found, killed)


def _work(played: Stage, told: Chronicle, passwords: Mapping[str, str]) -> Facts:
    """Let the invented people do what leaves every page of the console with something to show."""
    say("people sign, recover, edit, requeue and set things up")
    later = Afternoon(told.last.seed, told.last.day)
    addresses = furnish(played, passwords)
    played.sink.control(outage=True, outage_paths=[*OUTAGE_PATHS])
    played.sender.send_all(later.deliveries(), lambda _answer: None)
    send_on(played, addresses, later)
    close_the_books()
    edited, by_hand = [event.key for event in told.days[1].plan if event.fate is Fate.FAILS][
        :2
    ]
    decide_letters(edited, by_hand)
    wait_for_the_afternoon()
    note_causes()
    run_redrives(played)
    return aftermath() | books() | furniture()


def _send(played: Stage, deliveries: Sequence[StoryDelivery]) -> tuple[list[Answered], Killed]:
    half = Kill(replay=0, after=len(deliveries) // 2, whole_group=True, moment="effect")
    killer = Killer([half], groups=played.groups, sink=played.sink, seed=len(deliveries))
    with bar("deliveries through the door", len(deliveries)) as shown, killer:
        answers = played.sender.send_all(deliveries, partial(_answered, shown, killer))
    [killed] = killer.log
    say(f"half way, {killed.target} was killed with {len(killed.hit)} running jobs")
    return answers, killed


def _answered(shown: Bar, killer: Killer, _answer: Answered) -> None:
    shown.advance()
    killer.answered()


def _settle(played: Stage) -> Settled:
    with bar("jobs until all is settled", 0) as shown:
        return settle(played.sink, seconds=SETTLE_SECONDS, told=shown.left)
