"""Everything a story is played on: its sink, its tenants and sources, the processes of a stack."""

import io
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

from django.core.management import call_command

from reliability.embedded.deployment import prepare
from reliability.embedded.processes import children, identify
from reliability.embedded.programs import Program
from reliability.embedded.stack import Stack
from reliability.models import Source
from reliability.proof.cast import SOURCES, StorySource
from reliability.proof.faults import Group
from reliability.proof.post import Address, Sender
from reliability.proof.sink_process import Sink

ALERTED = "on-call@example.com"
LEDGER = {
    "columns": {
        "id": "id", "kind": "kind", "amount": "amount", "currency": "currency", "occurred": "at",
    },
    "references": {"reference": "reference"},
    "units": "minor",
    "rows": [{"column": "id", "equals": "ROWS", "is": "count", "figure": "amount"}],
}  # fmt: skip
STATEMENTS = {
    "stripe": ("--statement-kind=charge", "--statement-kind=refund"),
    "generic-hmac": (
        "--statement-kind=invoice",
        "--statement-kind=receipt",
        "--statement-format=mapped-csv",
        *(f"--statement-option={name}={json.dumps(value)}" for name, value in LEDGER.items()),
    ),
}
"""How each provider's daily statement is read; a scheme that is not here sends none."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A running stack with the story's sources, ready for deliveries."""

    folder: Path
    sink: Sink
    stack: Stack
    sender: Sender

    def groups(self) -> list[Group]:
        """Return the worker groups that are up, with the pool each has now, zombies left out."""
        up = [each for each in self.stack.processes() if each.state == "RUNNING"]
        return [
            Group(
                name=each.name,
                parent=each.pid,
                pool=tuple(pid for pid in children(each.pid) if identify(pid)),
            )
            for each in up
            if each.name.startswith("jobs-")
        ]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a stage is to be like; latencies in milliseconds, port 0 for any.

    ``variables`` are for all its processes, ``of_one`` for the program of that name alone.
    """

    seed: int
    latency_ms: float
    key_check: bool = True
    port: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    of_one: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@contextmanager
def stage(folder: Path, wishes: Wishes) -> Iterator[Stage]:
    """Start the sink, migrate, cast the sources and start web, two worker groups, ticks and beat."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    with ExitStack() as held:
        sink = Sink(
            folder / "sink",
            seed=wishes.seed,
            latency_ms=wishes.latency_ms,
            key_check=wishes.key_check,
        )
        held.callback(sink.stop)
        surroundings = {**os.environ, **sink.environment}
        prepare(surroundings)
        addresses = cast_sources()
        surroundings |= wishes.variables
        stack = Stack(folder, environment=surroundings, port=wishes.port, workers=2)
        stack.programs = [
            _with(one, wishes.of_one.get(one.name, {})) for one in stack.programs
        ]
        held.callback(stack.stop)
        stack.start()
        sender = Sender(stack.port, addresses)
        yield Stage(folder=folder, sink=sink, stack=stack, sender=sender)


def _with(program: Program, variables: Mapping[str, str]) -> Program:
    added = [f'{name}="{value}"' for name, value in variables.items()]
    return replace(program, environment=",".join(filter(None, [program.environment, *added])))


def _leave(number: int, _frame: FrameType | None) -> None:
    """Undo everything on the way out, as Ctrl-C would."""
    sys.exit(128 + number)


def cast_sources() -> dict[str, Address]:
    """Add the story's tenants and sources by the commands anybody would use."""
    for slug, name in {source.tenant: source.tenant_name for source in SOURCES}.items():
        ask("tenant", "add", slug, f"--name={name}", f"--email={ALERTED}")
    return {source.name: _cast(source) for source in SOURCES}


def _cast(source: StorySource) -> Address:
    statement = STATEMENTS.get(source.scheme, ())
    given = [f"--tenant={source.tenant}", f"--preset={source.scheme}", f"--zone={source.zone}"]
    made = ask("source", "add", source.name, *given, *statement)
    rules = [
        {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in rule.items()
        }
        for rule in source.operations
    ]
    Source.objects.filter(tenant__slug=source.tenant, slug=source.name).update(
        operation_rules=rules
    )
    return Address(path=urlsplit(made["url"]).path, secret=made["secret"])


def ask(command: str, *arguments: str) -> Mapping[str, Any]:
    """Run a command of ours in this process and read the JSON it prints, whatever its exit code."""
    out = io.StringIO()
    with suppress(SystemExit):
        call_command(command, *arguments, "--json", stdout=out)
    facts: Mapping[str, Any] = json.loads(out.getvalue())
    return facts
