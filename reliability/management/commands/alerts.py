"""`manage.py alerts`: rules, alerts and silences; evaluate once, test, silence, the morning mail."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from rich.console import Console

from reliability.alerts.adding import WantedRule, add_alert_rule
from reliability.alerts.deliver import deliver, send_test
from reliability.alerts.evaluate import evaluate
from reliability.alerts.morning import morning, set_morning
from reliability.alerts.silences import Window, end_silence, silence
from reliability.management import alert_channels
from reliability.management.alert_tables import living, rules, silence_row, silences, table
from reliability.management.asking import actor, done, source_called, tenant_called
from reliability.management.printing import say_facts, say_json
from reliability.models import AlertRule, Run, Silence, Tenant
from reliability.work.dead_letters import Act

ACTS = [
    "list", "evaluate", "test", "silence", "silences", "end", "morning", "add", "channels",
    "channel",
]  # fmt: skip
LEVELS = ("high", "low", "hold")


class Command(BaseCommand):
    help = (
        "List alert rules and open alerts; add a rule; list, add or remove channels; evaluate "
        "once; send a test mail; plan, list or end silences; print or set the morning mail."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("act", nargs="?", choices=ACTS, default="list")
        parser.add_argument("verb", nargs="?", help="channel add, channel remove")
        parser.add_argument("--to", metavar="ADDRESS", help="where the test mail goes")
        parser.add_argument("--tenant", metavar="SLUG", help="this tenant only")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--from", metavar="TIME", help="ISO 8601; without a zone UTC")
        parser.add_argument("--until", metavar="TIME", help="at most 30 days later")
        parser.add_argument("--reason", default="", help="kept with the act")
        parser.add_argument("--source", metavar="SLUG", help="silence this source only")
        parser.add_argument("--kind", default="", help="silence letters of this kind only")
        parser.add_argument(
            "--rule", metavar="ID", help="of this rule only: a silence, a channel"
        )
        parser.add_argument("--silence", metavar="ID", help="the one to end")
        parser.add_argument(
            "--at", metavar="HH:MM", help="when the morning mail comes, or never"
        )
        parser.add_argument("--zone", metavar="NAME", help="the mornings' zone")

        self._of_a_rule(parser)

    def _of_a_rule(self, parser: CommandParser) -> None:
        parser.add_argument("--measure", metavar="NAME", help="what a new rule looks at")
        parser.add_argument("--name", default="", help="what a rule or channel is called")
        parser.add_argument("--cause", default="", help="letters of this fingerprint only")
        parser.add_argument("--currency", default="", help="of the money at risk: EUR")
        parser.add_argument(
            "--email", action="append", default=[], help="whom a new rule tells"
        )
        parser.add_argument(
            "--channel", action="append", default=[], help="which channel it tells"
        )
        parser.add_argument(
            "--remind", type=int, default=14_400, help="seconds between reminders, or 0"
        )
        parser.add_argument(
            "--address", metavar="URL", help="of a new channel; - reads it from the input"
        )
        parser.add_argument("--owner", default="", help="who looks into it")
        for level in LEVELS:
            parser.add_argument(f"--{level}", type=int, default=0, metavar="NUMBER")

    def handle(self, *_: Any, **options: Any) -> None:
        as_json = options["json"]
        match options["act"]:
            case "evaluate":
                self._say(_evaluate_once(), as_json=as_json)
            case "test":
                self._say(_test(options["to"]), as_json=as_json)
            case "morning":
                self._morning(options)
            case "list" | "silences" | "channels":
                self._tables(_listed(options), as_json=as_json)
            case _:
                self._facts(_changed(options), as_json=as_json)

    def _say(self, facts: dict[str, Any], *, as_json: bool) -> None:
        words = ", ".join(f"{name} {value}" for name, value in facts.items() if value)
        self.stdout.write(json.dumps(facts) if as_json else words or "Nothing changed.")

    def _facts(self, facts: dict[str, Any], *, as_json: bool) -> None:
        (say_json if as_json else say_facts)(self.stdout, facts)

    def _tables(self, found: dict[str, list[dict[str, Any]]], *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(found))
            return
        console = Console(file=self.stdout, markup=False, emoji=False)  # type: ignore[arg-type]  # OutputWrapper is a file
        for title, rows in found.items():
            console.print(table(title, rows))

    def _morning(self, options: dict[str, Any]) -> None:
        """Print the mail as it would go out now; with ``--at`` or ``--zone``, set when it comes."""
        tenant = _tenant(options)
        if options["at"] or options["zone"] is not None:
            at = tenant.morning_at if not options["at"] else _time(options["at"])
            zone = tenant.morning_zone if options["zone"] is None else options["zone"]
            tenant = done(set_morning(_act(tenant, options), at_time=at, zone=zone))
            facts = {"morning_mail": tenant.morning_at or "never", "zone": tenant.morning_zone}
            self._facts(facts, as_json=options["json"])
            return
        told = morning(tenant, timezone.now())
        if options["json"]:
            say_json(self.stdout, asdict(told))
        else:
            self.stdout.write(f"Subject: {told.subject}\n\n{told.body}")


def _listed(options: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    tenant = options["tenant"]
    match options["act"]:
        case "silences":
            return {"silences": silences(tenant)}
        case "channels":
            return {"channels": alert_channels.listed(_tenant(options))}
        case _:
            return {"rules": rules(tenant), "alerts": living(tenant)}


def _changed(options: dict[str, Any]) -> dict[str, Any]:
    match options["act"]:
        case "silence":
            return silence_row(_silence(options))
        case "end":
            return silence_row(_end(options))
        case "channel":
            return _channel(options)
        case _:
            rule = _add(options)
            return {"rule": rule.name, "id": str(rule.public_id)}


def _evaluate_once() -> dict[str, Any]:
    evaluated = asdict(evaluate(Run.Trigger.COMMAND))
    return evaluated | {f"mails_{name}": n for name, n in asdict(deliver()).items()}


def _test(to: str | None) -> dict[str, Any]:
    if not to:
        raise CommandError("Say where the test mail goes: alerts test --to ADDRESS.")
    try:
        validate_email(to)
        send_test(to)
    except ValidationError:
        raise CommandError(f"{to!r} is not a mail address.") from None
    except (OSError, ValueError) as err:
        raise CommandError(f"The mail could not be sent: {err}. Check EMAIL_URL.") from None
    return {"sent_to": to}


def _silence(options: dict[str, Any]) -> Silence:
    tenant = _tenant(options)
    window = Window(
        from_at=_moment("from", options["from"]),
        until_at=_moment("until", options["until"]),
        source=source_called(options["source"], tenant) if options["source"] else None,
        kind=options["kind"],
        rule=_rule(options["rule"], tenant) if options["rule"] else None,
    )
    return done(silence(window, _act(tenant, options)))


def _add(options: dict[str, Any]) -> AlertRule:
    tenant = _tenant(options)
    wanted = WantedRule(
        measure=options["measure"] or "",
        name=options["name"],
        high=options["high"],
        low=options["low"],
        hold=timedelta(seconds=options["hold"]),
        source=source_called(options["source"], tenant) if options["source"] else None,
        kind=options["kind"],
        fingerprint=options["cause"],
        currency=options["currency"].upper(),
        remind=timedelta(seconds=options["remind"]),
        emails=options["email"],
        channels=[alert_channels.called(name, tenant) for name in options["channel"]],
        owner=options["owner"],
    )
    return done(add_alert_rule(wanted, _act(tenant, options)))


def _channel(options: dict[str, Any]) -> dict[str, Any]:
    tenant = _tenant(options)
    act = _act(tenant, options)
    if alert_channels.verb_of(options) == "remove":
        return alert_channels.remove(options, act)
    rules = [_rule(options["rule"], tenant)] if options["rule"] else []
    return alert_channels.add(options, act, rules)


def _end(options: dict[str, Any]) -> Silence:
    tenant = _tenant(options)
    planned = _one(Silence.objects.filter(tenant=tenant), options["silence"], "silence")
    return done(end_silence(planned, _act(tenant, options)))


def _rule(public_id: str, tenant: Tenant) -> AlertRule:
    found: AlertRule = _one(AlertRule.objects.filter(tenant=tenant), public_id, "rule")
    return found


def _one(rows: Any, public_id: str | None, what: str) -> Any:
    try:
        found = rows.filter(public_id=public_id).first() if public_id else None
    except ValidationError:
        found = None
    if found is None:
        raise CommandError(f"The tenant has no {what} {public_id!r}; alerts list names them.")
    return found


def _tenant(options: dict[str, Any]) -> Tenant:
    if not options["tenant"]:
        raise CommandError("Say whose: --tenant SLUG.")
    return tenant_called(options["tenant"])


def _act(tenant: Tenant, options: dict[str, Any]) -> Act:
    return Act(tenant, actor(), reason=options["reason"])


def _moment(option: str, text: str | None) -> datetime:
    try:
        found = parse_datetime(text or "")
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"--{option} takes a time such as 2026-10-02T22:00+02:00.")
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _time(text: str) -> time | None:
    if text == "never":
        return None
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise CommandError("--at takes a time of day such as 08:00, or never.") from None
