"""`manage.py redrive`: requeue many letters at a pace, and watch or steer what is under way."""

from typing import Any
from urllib.parse import urlencode

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from reliability.conf import conf
from reliability.errors import RedriveRefused
from reliability.management.asking import actor, tenant_called
from reliability.management.letters import EQUAL, describe_filters, matching, narrows
from reliability.management.printing import say_facts, say_json, say_table
from reliability.management.redrives import called, facts, row, verdicts
from reliability.models import Redrive, Tenant
from reliability.work import redrive as work
from reliability.work.dead_letters import Act
from reliability.work.redrive.mail import tell

FILTERS = ("source", "age", "rounds", "key", "status", *EQUAL)
STEERED = {
    "approve": work.approve, "cancel": work.cancel, "pause": work.pause, "resume": work.resume,
    "review": work.review,
}  # fmt: skip


class Command(BaseCommand):
    help = "Requeue many dead letters at a pace; watch and steer redrives. Exit 1 if refused."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        start = acts.add_parser("start", help="freeze what the filters find, and requeue it")
        describe_filters(start)
        _describe_plan(start)
        shown = acts.add_parser("list", help="list redrives, the newest first")
        shown.add_argument("--live", action="store_true", help="only those that are not over")
        steered = [acts.add_parser("show", help="show one redrive: dry run, outcomes, pace")]
        steered += [acts.add_parser(name, help=f"{name} one redrive") for name in STEERED]
        for one in steered:
            one.add_argument("redrive", metavar="REDRIVE", help="R-7, or its id")
            one.add_argument("--reason", default="", help="kept in the audit trail")
        for one in (start, shown, *steered):
            one.add_argument("--tenant", required=True, metavar="SLUG")
            one.add_argument("--json", action="store_true", help="print JSON")
        tick = acts.add_parser("advance", help="move every redrive one step on, as beat does")
        tick.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            self._act(options)
        except RedriveRefused as refused:
            raise CommandError(str(refused)) from None

    def _act(self, options: dict[str, Any]) -> None:
        if options["act"] == "advance":
            return self._advance(as_json=options["json"])
        tenant = tenant_called(options["tenant"])
        match options["act"]:
            case "list":
                return self._list(tenant, options)
            case "start":
                return self._show(_start(tenant, options), as_json=options["json"])
            case "show":
                return self._show(called(tenant, options["redrive"]), as_json=options["json"])
        act = Act(tenant, actor(), reason=options["reason"])
        redrive = STEERED[options["act"]](called(tenant, options["redrive"]), act)
        return self._show(redrive, as_json=options["json"])

    def _list(self, tenant: Tenant, options: dict[str, Any]) -> None:
        redrives = Redrive.objects.filter(tenant=tenant).order_by("-cutoff_at", "-pk")
        found = redrives.live() if options["live"] else redrives
        told = [row(one) for one in found[: conf().page_size]]
        if options["json"]:
            return say_json(self.stdout, {"redrives": told})
        return say_table(self.stdout, f"Redrives of {tenant.slug}", told)

    def _show(self, redrive: Redrive, *, as_json: bool) -> None:
        if as_json:
            return say_json(self.stdout, facts(redrive) | {"dry_run": verdicts(redrive)})
        say_facts(self.stdout, facts(redrive))
        return say_table(self.stdout, "Dry run", verdicts(redrive))

    def _advance(self, *, as_json: bool) -> None:
        now = timezone.now()
        moved = [
            row(one.redrive) | {"requeued": one.requeued, "newly_settled": one.settled}
            for one in work.advance(now)
        ]
        sent = tell(now)
        if as_json:
            return say_json(self.stdout, {"redrives": moved, "mails": sent})
        return say_table(self.stdout, "Redrives moved on", moved)


def _describe_plan(parser: CommandParser) -> None:
    kept = conf()
    parser.add_argument("--reason", default="", help="kept with every letter; required")
    parser.add_argument("--dry-run", action="store_true", help="only say what would become")
    parser.add_argument("--pace", choices=Redrive.Pace.values, default=Redrive.Pace.RAMP)
    parser.add_argument("--rate", type=float, default=kept.redrive_rate, help="letters/second")
    parser.add_argument("--stop-percent", type=int, default=kept.redrive_stop_percent)
    parser.add_argument("--stop-after", type=int, default=kept.redrive_stop_after)
    parser.add_argument("--include-cannot-tell", action="store_true")
    parser.add_argument("--ticket", default="")
    parser.add_argument("--mail", default="", metavar="ADDRESS", help="told when it ends")
    parser.add_argument("--break-glass", default="", metavar="WHY", help="no second person")


def _start(tenant: Tenant, options: dict[str, Any]) -> Redrive:
    """Freeze and start; the filters are kept under the names the console's list has for them."""
    if not narrows(options):
        raise CommandError("Give a filter; --status open means all open letters.")
    asked = urlencode({name: options[name] for name in FILTERS if options[name]})
    now, act = timezone.now(), Act(tenant, actor(), reason=options["reason"])
    if not (options["dry_run"] or act.reason.strip()):
        raise CommandError("Say why with --reason: it is kept with every letter.")
    redrive = work.freeze(matching(tenant, options, now=now), act, asked=asked, now=now)
    return redrive if options["dry_run"] else work.start(redrive, act, _plan(options))


def _plan(options: dict[str, Any]) -> work.Plan:
    pace = work.Pace(
        how=options["pace"], rate=options["rate"], stop_percent=options["stop_percent"],
        stop_after=options["stop_after"],
    )  # fmt: skip
    return work.Plan(
        pace=pace, include_cannot_tell=options["include_cannot_tell"], ticket=options["ticket"],
        mail_to=options["mail"], break_glass=options["break_glass"],
    )  # fmt: skip
