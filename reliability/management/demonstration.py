"""The demo's day: sent through the real door, a worker group killed half way, and compared."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from reliability.management.progress import Bar, bar, say
from reliability.management.stage import Stage, ask
from reliability.management.trial import yesterday
from reliability.models import Alert
from reliability.proof.cast import OUTAGE_PATH, STRIPE
from reliability.proof.faults import Kill, Killed, Killer
from reliability.proof.observe import observe
from reliability.proof.post import Answered
from reliability.proof.settle import Settled, settle
from reliability.proof.story import Story, Troubles
from reliability.proof.verdict import Check, checks, figures

TROUBLES = Troubles(failing_charges=40, express_orders=30, broken=3, never_sent=12)
SETTLE_SECONDS = 60
LATENCY_MS, ANSWER_LATENCY_MS = 5.0, 60.0
EXPECTED_FILE = "expected.json"
PEOPLE = (("admin", "admin"), ("olga", "operator"), ("vera", "viewer"))
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


def story_of(seed: int, events: int) -> Story:
    """Write yesterday, with enough trouble to open an alert."""
    return Story(seed=seed, events=events, day=yesterday(), troubles=TROUBLES)


def play(played: Stage, story: Story) -> Day:
    """Write down what must come of the day, send it, settle it, and compare the statement."""
    told = story.expected()
    expected = {**figures(told), "missing": told["missing"]}
    text = json.dumps({"seed": story.seed, "day": str(story.day), **expected}, indent=1)
    (played.folder / EXPECTED_FILE).write_text(text)
    played.sink.control(outage=True, outage_paths=[OUTAGE_PATH])
    played.sink.control(answer_latency_ms=ANSWER_LATENCY_MS)
    answers, killed = _send(played, story)
    settled = _settle(played)
    played.sink.control(outage=False)
    found = observe(played.sink, answers) | {
        "left": settled.left,
        "unknown_resolved": settled.resolved,
        "unknown_requeued": settled.requeued,
        "missing": _missing(played, story),
        "alerts_opened": Alert.objects.exclude(opened_at=None).count(),
    }
    return Day(expected, found, killed)


def people() -> list[dict[str, str]]:
    """Add a person of each role to both tenants; return their names, roles and passwords."""
    made = []
    for name, role in PEOPLE:
        first = ask("member", "add", name, "--tenant=acme", f"--role={role}")
        ask("member", "add", name, "--tenant=borealis", f"--role={role}")
        made.append({"user": name, "role": role, "password": first["password"]})
    return made


def _send(played: Stage, story: Story) -> tuple[list[Answered], Killed]:
    deliveries = story.deliveries()
    half = Kill(replay=0, after=len(deliveries) // 2, whole_group=True, moment="effect")
    killer = Killer([half], groups=played.groups, sink=played.sink, seed=story.seed)
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


def _missing(played: Stage, story: Story) -> Facts:
    """Give the day its statement and count, by cause, what the compare misses."""
    file = played.folder / f"balance-{story.day}.csv"
    file.write_bytes(story.statement_csv())
    source = [f"--source={STRIPE.name}", f"--tenant={STRIPE.tenant}"]
    report = ask("reconcile", *source, f"--day={story.day}", f"--file={file}")
    found = report.get("discrepancies", [])
    causes = Counter(one["cause"] for one in found if one["verdict"] == "missing")
    others = len(found) - causes.total()
    say(f"the daily compare: {report.get('completeness', report)}, {len(found)} discrepancies")
    return dict(causes) | ({"other discrepancies": others} if others else {})
