"""The proof: a control run without faults, a trial with them, and what the two amount to."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reliability.apps import HANDLERS_VARIABLE
from reliability.embedded.servers import throwaway
from reliability.management import proof_words as words
from reliability.management.inside import HANDLERS, run_inside
from reliability.management.progress import say
from reliability.management.trial import Terms, yesterday
from reliability.proof import wrong_clock
from reliability.proof.plan import STRIKES, Fault
from reliability.proof.story import Story
from reliability.proof.verdict import Check, checks, figures, same_state

Facts = dict[str, Any]
NAMED_FROM = 9
"""From so many kills on, three are at named points, and one of those at least is reached."""


class TrialEnded(Exception):
    """A trial ended before it had found anything; its own words stand above."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was tried, what was found after each replay, and every check of it."""

    terms: Terms
    replays: Sequence[Facts]
    kills: Sequence[Facts]
    faults: Sequence[Facts] = ()
    cannot_redirect: Sequence[str] = ()
    """Kinds of the host's whose effects would leave these servers: their events were left out."""
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
            "kills_by_point": words.by_point(self.kills),
            "kills_by_second": words.by_second(self.kills),
            "faults": dict(Counter(fault["strike"]["fault"] for fault in self.faults)),
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
            "fault_log": list(self.faults),
            "cannot_redirect": list(self.cannot_redirect),
            "failed": [c.facts() for group in self.checks for c in group if not c.ok],
            "replays": list(self.replays),
        }

    def words(self) -> str:
        """Tell it to a person: a table of what struck, two plots, the figures, the verdict."""
        figures = self.figures
        point, second = figures.pop("kills_by_point"), figures.pop("kills_by_second")
        lines = [
            *words.table(self.kills, self.faults),
            *words.plot("kills by where they ended a process", point),
            *words.seconds_plot(second),
            "",
            *words.figure_lines(figures),
            *(f"cannot redirect {kind}: left out" for kind in self.cannot_redirect),
            *self._failures(),
            "",
            self._end(),
        ]
        return "\n".join(lines)

    def _failures(self) -> list[str]:
        lines = []
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
        f"seed {terms.seed}: {terms.events} events, {terms.replays} replays, "
        f"{terms.kills} kills, faults: {', '.join(terms.faults) or 'none'}"
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
    told = [_told(terms, story, number) for number in range(1, len(replays) + 1)]
    wanted = control["replays"][0]["digest"]
    whole = [
        Check("the control run is as told beforehand", [], _failed(terms, control)),
        Check("all replays were played", terms.replays, len(replays)),
        *same_state([replay["digest"] for replay in replays], control=wanted),
        *_kills_hit(terms, found["kills"]),
        *_faults_struck(terms, found),
    ]
    each = [checks(expected, replay) for expected, replay in zip(told, replays, strict=True)]
    return Proof(
        terms=terms, replays=replays, kills=found["kills"], faults=found["faults"],
        checks=[*each, whole], cannot_redirect=found["cannot_redirect"],
    )  # fmt: skip


def _told(terms: Terms, story: Story, replays: int = 1) -> Mapping[str, Any]:
    """Say what is known beforehand: of a file's events, how often they are sent."""
    if terms.app:
        return {}
    if terms.file:
        return {"sent": sum(len(story.deliveries(number)) for number in range(replays))}
    return figures(story.expected(replays))


def _failed(terms: Terms, control: Facts) -> list[str]:
    told = _told(terms, terms.story(yesterday()))
    return [check.promise for check in checks(told, control["replays"][0]) if not check.ok]


def _kills_hit(terms: Terms, kills: Sequence[Mapping[str, Any]]) -> list[Check]:
    """A proof whose kills hit nothing proves nothing."""
    if terms.file:
        return [_all_carried_out(terms, kills)]
    hit = any(kill["hit"] for kill in kills)
    between = any(job["where"] == words.BETWEEN for kill in kills for job in kill["hit"])
    at_point = any(kill["point"] for kill in kills)
    named = Check("a process ended at a named point", expected=True, found=at_point)
    return [
        _all_carried_out(terms, kills),
        Check("a kill hit a running job", bool(terms.kills), hit),
        Check("a kill came between effect and completion", bool(terms.kills), between),
        *([named] if terms.kills >= NAMED_FROM else []),
    ]


def _all_carried_out(terms: Terms, kills: Sequence[Mapping[str, Any]]) -> Check:
    done = sum(bool(kill["pids"]) for kill in kills)
    return Check("every planned kill was carried out", terms.kills, done)


def _faults_struck(terms: Terms, found: Facts) -> list[Check]:
    """Nor does one whose faults did nothing."""
    done = [fault for fault in found["faults"] if fault["did"]]
    struck = Counter(fault["strike"]["fault"] for fault in done)
    planned = {str(fault): 2 for fault in terms.faults if fault in STRIKES}
    last = found["replays"][-1]
    statuses, checked = last["requests_by_status"], []
    if Fault.SIGSTOP in terms.faults:
        hit = any(fault["hit"] for fault in done)
        checked.append(
            Check("a worker stood still while it had jobs", expected=True, found=hit)
        )
    if Fault.ANSWERS in terms.faults:
        bad = bool(statuses.get("429") or statuses.get("500"))
        checked.append(Check("the provider gave bad answers", expected=True, found=bad))
    if Fault.CLOCK in terms.faults:
        wrong = bool(last["attempts_by_a_wrong_clock"])
        checked.append(Check("a worker with a wrong clock worked", expected=True, found=wrong))
    return [Check("every planned fault struck", planned, dict(struck)), *checked]


def _play(terms: Terms, *, logs: Path | None) -> Facts:
    with throwaway() as addresses:
        found = addresses.folder / "found.json"
        arguments = ["prove", f"--trial={found}", f"--seed={terms.seed}"]
        arguments += [f"--events={terms.events}", f"--replays={terms.replays}"]
        arguments += [
            f"--kills={terms.kills}",
            *([] if terms.key_check else ["--no-key-check"]),
            *([f"--faults={','.join(terms.faults)}"] if terms.faults else []),
            *([f"--file={terms.file}"] if terms.file else []),
            *(["--app"] if terms.app else []),
        ]
        handlers = _handlers(terms)
        code = run_inside(arguments, folder=addresses.folder, handlers=handlers)
        if logs:
            shutil.copytree(addresses.folder / "log", logs, dirs_exist_ok=True)
        if code or not found.exists():
            raise TrialEnded(f"The trial ended with code {code} before it found anything.")
        facts: Facts = json.loads(found.read_text())
        return facts


def _handlers(terms: Terms) -> str:
    """Name the modules of handlers: the story's, or the host's own with the clock beside them."""
    own = os.environ.get(HANDLERS_VARIABLE, "") if terms.app else HANDLERS
    return ",".join(filter(None, [own, wrong_clock.__name__]))
