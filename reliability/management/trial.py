"""One trial: a story's day sent over and over while workers are killed, seen after each replay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from reliability.management.progress import Bar, bar, say
from reliability.management.stage import Stage, Wishes, stage
from reliability.proof.cast import OUTAGE_PATH
from reliability.proof.faults import Kill, Killed, Killer, plan
from reliability.proof.observe import observe
from reliability.proof.post import Answered
from reliability.proof.settle import settle
from reliability.proof.story import Story, Troubles

SETTLE_SECONDS = 120
LATENCY_MS = 5.0
ANSWER_LATENCY_MS = 300.0
"""Long enough that kills come between an effect and the answer that tells of it."""
Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is tried: the same terms give the same deliveries and the same plan of kills."""

    seed: int
    events: int
    replays: int
    kills: int
    key_check: bool = True

    @property
    def unfaulted(self) -> "Terms":
        """The control run: the same day, sent once, nothing killed, every key honoured."""
        return replace(self, replays=1, kills=0, key_check=True)

    def story(self, day: date) -> Story:
        """Write the day, with one trouble in fifty events."""
        few = self.events // 50
        troubles = Troubles(failing_charges=few, express_orders=few, broken=1)
        return Story(seed=self.seed, events=self.events, day=day, troubles=troubles)


def yesterday() -> date:
    """Return the day that stories tell: the last one that is over everywhere in UTC."""
    return (datetime.now(UTC) - timedelta(days=1)).date()


def run_trial(folder: Path, terms: Terms) -> Facts:
    """Play every replay on a stage of its own and return what was true after each."""
    story = terms.story(yesterday())
    size = len(story.deliveries())
    kills = plan(terms.seed, kills=terms.kills, replays=terms.replays, deliveries=size)
    wishes = Wishes(seed=terms.seed, latency_ms=LATENCY_MS, key_check=terms.key_check)
    with stage(folder, wishes) as played:
        played.sink.control(outage=True, outage_paths=[OUTAGE_PATH])
        played.sink.control(answer_latency_ms=ANSWER_LATENCY_MS)
        return _replays(played, story, terms, kills)


def _replays(played: Stage, story: Story, terms: Terms, kills: Sequence[Kill]) -> Facts:
    answers: list[Answered] = []
    log: list[Killed] = []
    found = []
    for number in range(terms.replays):
        now = [kill for kill in kills if kill.replay == number]
        killer = Killer(now, groups=played.groups, sink=played.sink, seed=terms.seed)
        answers += _send(played, story, number, killer)
        log += killer.log
        found.append(_settled(played, answers, number))
    return {"replays": found, "kills": [killed.facts() for killed in log]}


def _send(played: Stage, story: Story, number: int, killer: Killer) -> list[Answered]:
    deliveries = story.deliveries(number)
    with bar(f"replay {number + 1}: deliveries", len(deliveries)) as shown, killer:
        told = partial(_answered, shown, killer)
        return played.sender.send_all(deliveries, told)


def _answered(shown: Bar, killer: Killer, _answer: Answered) -> None:
    shown.advance()
    killer.answered()


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
