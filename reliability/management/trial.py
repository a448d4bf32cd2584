"""One trial: a day sent over and over while things go wrong, seen after each replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.db import connections

from reliability.handlers import find
from reliability.killing import KILL_VARIABLE, ORDERED
from reliability.management.progress import Bar, bar, say
from reliability.management.stage import Stage, Wishes, stage
from reliability.management.strikes import Striker, Struck
from reliability.proof import plan, wrong_clock
from reliability.proof.cast import KINDS, OUTAGE_PATH
from reliability.proof.day_file import FileDay, read_day
from reliability.proof.faults import Aim, Killed
from reliability.proof.observe import observe
from reliability.proof.plan import Act, Fault, Kill, Strike
from reliability.proof.post import Answered
from reliability.proof.settle import settle
from reliability.proof.story import Story, Troubles
from reliability.proof.timeline import Timeline
from reliability.work.drain import LOCAL

SETTLE_SECONDS = 120
LATENCY_MS = 5.0
ANSWER_LATENCY_MS = 300.0
"""Long enough that kills come between an effect and the answer that tells of it."""
WRONG_GROUP = "jobs-2"
Facts = dict[str, Any]
Play = Timeline[Act, Killed | Struck]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is tried: the same terms give the same deliveries and the same plan of what goes wrong."""

    seed: int
    events: int
    replays: int
    kills: int
    key_check: bool = True
    faults: tuple[Fault, ...] = ()
    file: str = ""
    """Where the events are, in place of an invented day's."""
    app: bool = False
    """Whether the host's own handlers work them, as far as their effects stay here."""

    @property
    def unfaulted(self) -> "Terms":
        """The control run: the same day, sent once, nothing wrong, every key honoured."""
        return replace(self, replays=1, kills=0, key_check=True, faults=())

    def story(self, day: date) -> Story:
        """Write the day, with one trouble in fifty events; or read it from the file."""
        if self.file:
            given = read_day(Path(self.file), kinds=None if self.app else KINDS)
            return FileDay(seed=self.seed, events=len(given), day=day, given=given)
        few = self.events // 50
        troubles = Troubles(failing_charges=few, express_orders=few, broken=1)
        return Story(seed=self.seed, events=self.events, day=day, troubles=troubles)

    def kills_of(self, deliveries: int) -> list[Kill]:
        """Draw the kills among so many deliveries of each replay."""
        return plan.plan(
            self.seed, kills=self.kills, replays=self.replays, deliveries=deliveries
        )

    def strikes_of(self, deliveries: int) -> list[Strike]:
        """Draw the faults likewise."""
        return plan.strikes(
            self.seed, self.faults, replays=self.replays, deliveries=deliveries
        )


def yesterday() -> date:
    """Return the day that stories tell: the last one that is over everywhere in UTC."""
    return (datetime.now(UTC) - timedelta(days=1)).date()


def run_trial(folder: Path, terms: Terms) -> Facts:
    """Play every replay on a stage of its own and return what was true after each."""
    story = terms.story(yesterday())
    story, left_out = kept_here(story) if isinstance(story, FileDay) else (story, [])
    wishes = Wishes(
        seed=terms.seed,
        latency_ms=LATENCY_MS,
        key_check=terms.key_check,
        variables={KILL_VARIABLE: ORDERED} if terms.kills else {},
        of_one=_wrong_clock(terms),
    )
    with stage(folder, wishes) as played:
        played.sink.control(outage=True, outage_paths=[OUTAGE_PATH])
        played.sink.control(answer_latency_ms=ANSWER_LATENCY_MS)
        return _replays(played, story, terms) | {"cannot_redirect": left_out}


def kept_here(day: FileDay) -> tuple[FileDay, list[str]]:
    """Leave out the events whose handlers reach outside and cannot be led to the sink.

    Returns what is left and the kinds left out: of effects elsewhere, or worked by nobody here.
    """
    own = {name for name in {event.kind for event in day.given} if _stays_here(name)}
    kept = tuple(event for event in day.given if event.kind in own)
    return replace(day, given=kept), sorted({event.kind for event in day.given} - own)


def _stays_here(name: str) -> bool:
    kind = find(name)
    return name in KINDS or (kind is not None and kind.queue == LOCAL)


def _wrong_clock(terms: Terms) -> Mapping[str, Mapping[str, str]]:
    if Fault.CLOCK not in terms.faults:
        return {}
    return {WRONG_GROUP: {wrong_clock.VARIABLE: str(wrong_clock.AHEAD.total_seconds())}}


class _Doing:
    """Does one act of the plan, whichever it is."""

    def __init__(self, played: Stage, seed: int) -> None:
        self._aim = Aim(
            groups=played.groups, sink=played.sink, seed=seed, folder=played.folder
        )
        self._striker = Striker(played.folder, sink=played.sink, aim=self._aim)

    def __call__(self, act: Act) -> Killed | Struck:
        match act:
            case Kill():
                return self._aim.kill(act)
            case Strike():
                return self._striker.strike(act)


def _replays(played: Stage, story: Story, terms: Terms) -> Facts:
    size = len(story.deliveries())
    kills, strikes = terms.kills_of(size), terms.strikes_of(size)
    do, log = _Doing(played, terms.seed), list[Killed | Struck]()
    answers: list[Answered] = []
    found = []
    for number in range(terms.replays):
        timeline = Timeline(plan.of_replay(number, kills, strikes), do)
        answers += _send(played, story, number, timeline)
        log += timeline.log
        connections.close_all()  # a fault may have ended ours
        found.append(_settled(played, answers, number))
    return {
        "replays": found,
        "kills": [done.facts() for done in log if isinstance(done, Killed)],
        "faults": [done.facts() for done in log if isinstance(done, Struck)],
    }


def _send(played: Stage, story: Story, number: int, timeline: Play) -> list[Answered]:
    deliveries = story.deliveries(number)
    with bar(f"replay {number + 1}: deliveries", len(deliveries)) as shown, timeline:
        told = partial(_answered, shown, timeline)
        return played.sender.send_all(deliveries, told)


def _answered(shown: Bar, timeline: Play, _answer: Answered) -> None:
    shown.advance()
    timeline.answered()


def _settled(played: Stage, answers: Sequence[Answered], number: int) -> Facts:
    with bar(f"replay {number + 1}: jobs", 0) as shown:
        settled = settle(played.sink, seconds=SETTLE_SECONDS, told=shown.left)
    if settled.resolved + settled.requeued:
        say(f"unknown letters: {settled.resolved} resolved, {settled.requeued} requeued")
    return observe(played.sink, answers) | {
        "left": settled.left,
        "unknown_resolved": settled.resolved,
        "unknown_requeued": settled.requeued,
    }
