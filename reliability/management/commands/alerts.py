"""`manage.py alerts`: the rules and what is open; evaluate once; send a test mail."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from rich.console import Console
from rich.table import Table

from reliability.alerts.deliver import deliver, send_test
from reliability.alerts.evaluate import evaluate
from reliability.alerts.wording import level, one_line
from reliability.models import Alert, AlertRule, Run


class Command(BaseCommand):
    help = "List alert rules and open alerts; evaluate them once; send a test mail."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "act", nargs="?", choices=["list", "evaluate", "test"], default="list"
        )
        parser.add_argument("--to", metavar="ADDRESS", help="where the test mail goes")
        parser.add_argument("--tenant", metavar="SLUG", help="list this tenant only")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        match options["act"]:
            case "evaluate":
                self._say(_evaluate_once(), as_json=options["json"])
            case "test":
                self._say(_test(options["to"]), as_json=options["json"])
            case _:
                self._list(options["tenant"], as_json=options["json"])

    def _say(self, facts: dict[str, Any], *, as_json: bool) -> None:
        words = ", ".join(f"{name} {value}" for name, value in facts.items() if value)
        self.stdout.write(json.dumps(facts) if as_json else words or "Nothing changed.")

    def _list(self, tenant: str | None, *, as_json: bool) -> None:
        found = {"rules": _rules(tenant), "alerts": _living(tenant)}
        if as_json:
            self.stdout.write(json.dumps(found))
            return
        console = Console(file=self.stdout, markup=False, emoji=False)  # type: ignore[arg-type]  # OutputWrapper is a file
        for title, rows in found.items():
            console.print(_table(title, rows))


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


def _rules(tenant: str | None) -> list[dict[str, Any]]:
    rules = AlertRule.objects.select_related("tenant", "source").order_by("tenant_id", "pk")
    return [
        {
            "tenant": rule.tenant.slug,
            "rule": one_line(rule.name),
            "source": rule.source.slug if rule.source else "each",
            "opens": level(rule.measure, rule.high),
            "closes": level(rule.measure, rule.low),
            "hold_seconds": rule.hold_seconds,
            "emails": rule.emails,
            "enabled": rule.enabled,
        }
        for rule in (rules.filter(tenant__slug=tenant) if tenant else rules)
    ]


def _living(tenant: str | None) -> list[dict[str, Any]]:
    alerts = Alert.objects.filter(status__in=[Alert.Status.PENDING, Alert.Status.OPEN])
    alerts = alerts.select_related("tenant", "rule", "source").order_by("tenant_id", "since")
    return [
        {
            "alert": str(alert.public_id),
            "tenant": alert.tenant.slug,
            "rule": one_line(alert.rule.name),
            "source": alert.source.slug if alert.source else "",
            "status": alert.status,
            "value": level(alert.rule.measure, alert.value),
            "since": alert.since.isoformat(timespec="seconds"),
        }
        for alert in (alerts.filter(tenant__slug=tenant) if tenant else alerts)
    ]


def _table(title: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=f"{title}: {len(rows)}", title_justify="left")
    for name in rows[0] if rows else ():
        table.add_column(name.replace("_", " "))
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    return table


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
