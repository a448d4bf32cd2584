"""The proof: a control run without faults, a trial with them, and what the two amount to."""

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reliability.embedded.servers import throwaway
from reliability.management.inside import run_inside
from reliability.management.progress import say
from reliability.management.trial import Terms, yesterday
from reliability.proof.verdict import Check, checks, figures, same_state

Facts = dict[str, Any]
BETWEEN = "between effect and completion"


class TrialEnded(Exception):
    """A trial ended before it had found anything; its own words stand above."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was tried, what was found after each replay, and every check of it."""

    terms: Terms
    replays: Sequence[Facts]
    kills: Sequence[Facts]
    checks: Sequence[Sequence[Check]]
    """One list a replay, and one for the run as a whole."""

    @property
    def ok(self) -> bool:
        return all(check.ok for group in self.checks for check in group)

    @property
    def figures(self) -> Facts:
        """The figures of the kills and of the last replay."""
        hit = [job for kill in self.kills for job in kill["hit"]]
        return {
            "kills": len(self.kills),
            "kills_that_hit_a_running_job": sum(bool(kill["hit"]) for kill in self.kills),
            "jobs_hit": len(hit),
            "jobs_hit_by_where": dict(Counter(job["where"] for job in hit)),
            **self.replays[-1],
            "unknown_resolved": sum(each["unknown_resolved"] for each in self.replays),
            "unknown_requeued": sum(each["unknown_requeued"] for each in self.replays),
        }

    def facts(self) -> Facts:
        """Return all of it as JSON can say it."""
        return {
            "ok": self.ok,
            "terms": asdict(self.terms),
            "figures": self.figures,
            "kill_log": list(self.kills),
            "failed": [c.facts() for group in self.checks for c in group if not c.ok],
            "replays": list(self.replays),
        }

    def words(self) -> str:
        """Tell it to a person."""
        return "\n".join([*_kill_lines(self.kills), "", *self._lines(), "", self._end()])

    def _lines(self) -> list[str]:
        shown = {name: value for name, value in self.figures.items() if name != "digest"}
        lines = [
            f"{name.replace('_', ' '):<32}{_plain(value)}" for name, value in shown.items()
        ]
        for number, group in enumerate(self.checks, 1):
            what = f"replay {number}" if number <= len(self.replays) else "all"
            for check in group:
                if not check.ok:
                    lines.append(f"FAILED {what}: {check.promise}")
                    lines.append(f"       needed {check.expected}, found {check.found}")
        return lines

    def _end(self) -> str:
        count = sum(len(group) for group in self.checks)
        return f"{'PASS' if self.ok else 'FAIL'}  seed {self.terms.seed}, {count} checks"


def prove(terms: Terms, *, logs: Path | None = None) -> Proof:
    """Run the control and the trial, each on servers of its own, and judge.

    Raises `TrialEnded` where one of them could not be played to its end.
    """
    say(
        f"seed {terms.seed}: {terms.events} events, {terms.replays} replays, {terms.kills} kills"
    )
    say("control run, without faults")
    control = _play(terms.unfaulted, logs=logs and logs / "control")
    say("trial")
    found = _play(terms, logs=logs and logs / "trial")
    return judge(terms, control, found)


def judge(terms: Terms, control: Facts, found: Facts) -> Proof:
    """Check every replay against the story, and all of them against the control run."""
    story = terms.story(yesterday())
    replays = found["replays"]
    told = [figures(story.expected(number)) for number in range(1, len(replays) + 1)]
    wanted = control["replays"][0]["digest"]
    whole = [
        Check("the control run is as told beforehand", [], _failed(terms, control)),
        Check("all replays were played", terms.replays, len(replays)),
        *same_state([replay["digest"] for replay in replays], control=wanted),
        *_kills_hit(terms, found["kills"]),
    ]
    each = [checks(expected, replay) for expected, replay in zip(told, replays, strict=True)]
    return Proof(terms=terms, replays=replays, kills=found["kills"], checks=[*each, whole])


def _failed(terms: Terms, control: Facts) -> list[str]:
    told = figures(terms.story(yesterday()).expected())
    return [check.promise for check in checks(told, control["replays"][0]) if not check.ok]


def _kills_hit(terms: Terms, kills: Sequence[Mapping[str, Any]]) -> list[Check]:
    """A proof whose kills hit nothing proves nothing."""
    hit = any(kill["hit"] for kill in kills)
    between = any(job["where"] == BETWEEN for kill in kills for job in kill["hit"])
    return [
        Check(
            "every planned kill was carried out",
            terms.kills,
            sum(map(bool, (k["pids"] for k in kills))),
        ),
        Check("a kill hit a running job", bool(terms.kills), hit),
        Check("a kill came between effect and completion", bool(terms.kills), between),
    ]


def _play(terms: Terms, *, logs: Path | None) -> Facts:
    with throwaway() as addresses:
        found = addresses.folder / "found.json"
        arguments = ["prove", f"--trial={found}", f"--seed={terms.seed}"]
        arguments += [f"--events={terms.events}", f"--replays={terms.replays}"]
        arguments += [
            f"--kills={terms.kills}",
            *([] if terms.key_check else ["--no-key-check"]),
        ]
        code = run_inside(arguments, folder=addresses.folder)
        if logs:
            shutil.copytree(addresses.folder / "log", logs, dirs_exist_ok=True)
        if code or not found.exists():
            raise TrialEnded(f"The trial ended with code {code} before it found anything.")
        facts: Facts = json.loads(found.read_text())
        return facts


def _kill_lines(kills: Sequence[Facts]) -> list[str]:
    return [
        f"kill in replay {kill['kill']['replay'] + 1} after {kill['kill']['after']} deliveries: "
        f"{kill['target']}, {_hits(kill['hit'])}"
        for kill in kills
    ]


def _hits(hit: Sequence[Mapping[str, str]]) -> str:
    if not hit:
        return "hit no running job"
    by_where = Counter(job["where"] for job in hit)
    return ", ".join(f"{n} running {where}" for where, n in by_where.items())


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {n}" for name, n in value.items()) or "none"
    return str(value) if value != [] else "none"
