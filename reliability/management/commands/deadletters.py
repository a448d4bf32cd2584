"""`manage.py deadletters`: list and show dead letters; requeue, discard, resolve or restore them."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from reliability.conf import conf
from reliability.management.asking import actor, tenant_called
from reliability.management.letters import (
    called,
    describe_filters,
    matching,
    narrows,
    row,
    seen,
    told,
)
from reliability.management.printing import moment, say_facts, say_json, say_table
from reliability.models import DeadLetter, Tenant
from reliability.work.dead_letters import Act, Moved, discard, requeue, resolve, restore


class Command(BaseCommand):
    help = "List and show dead letters; requeue, discard, resolve or restore them. Exit 1 if refused."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        shown = acts.add_parser("list", help="list letters, the newest first")
        shown.add_argument("--limit", type=int, help=f"at most {conf().count_max}")
        show = acts.add_parser("show", help="show one letter with its attempts")
        requeued = acts.add_parser("requeue", help="give letters another round, in 10 s")
        discarded = acts.add_parser("discard", help="decide that letters need no effect")
        resolved = acts.add_parser("resolve", help="end letters as already applied")
        restored = acts.add_parser("restore", help="take a discard back")
        for one in (shown, requeued, discarded, resolved):
            describe_filters(one)
        for one in (requeued, discarded, resolved):
            one.add_argument("letters", nargs="*", metavar="LETTER", help="DL-7, or its id")
        for one in (show, restored):
            one.add_argument("letters", nargs=1, metavar="LETTER", help="DL-7, or its id")
        for one in (requeued, discarded, resolved, restored):
            one.add_argument("--reason", default="", help="kept in the audit trail")
        for one in (shown, show, requeued, discarded, resolved, restored):
            one.add_argument("--tenant", required=True, metavar="SLUG")
            one.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        tenant = tenant_called(options["tenant"])
        match options["act"]:
            case "list":
                self._list(tenant, options)
            case "show":
                self._show(called(tenant, options["letters"])[0], as_json=options["json"])
            case _:
                self._tell(_act(tenant, options), as_json=options["json"])

    def _list(self, tenant: Tenant, options: dict[str, Any]) -> None:
        limit = min(max(options["limit"] or conf().page_size, 1), conf().count_max)
        letters = matching(tenant, options, now=timezone.now())
        found = [row(letter) for letter in letters[: limit + 1]]
        more = len(found) > limit
        if options["json"]:
            return say_json(self.stdout, {"letters": found[:limit], "more": more})
        say_table(self.stdout, f"Dead letters of {tenant.slug}", found[:limit])
        return (
            self.stdout.write(f"More than {limit}: narrow, or raise --limit.")
            if more
            else None
        )

    def _show(self, letter: DeadLetter, *, as_json: bool) -> None:
        facts = row(letter) | {
            "id": letter.public_id, "reason": letter.reason, "cause": letter.fingerprint,
            "downstream_key": letter.job.key.downstream_key, "job_state": letter.job.state,
            "closed_by": letter.closed_by, "closed_reason": letter.closed_reason,
        }  # fmt: skip
        attempts = _attempts(letter)
        if as_json:
            return say_json(self.stdout, facts | {"attempts": attempts})
        say_facts(self.stdout, facts)
        return say_table(self.stdout, "Attempts", attempts)

    def _tell(self, moved: Moved, *, as_json: bool) -> None:
        facts = told(moved)
        if as_json:
            say_json(self.stdout, facts)
        else:
            say_facts(
                self.stdout,
                {name: facts[name] for name in ("moved", "starts_at") if facts[name]},
            )
        if moved.refused:
            why = "; ".join(f"{one['letter']}: {one['why']}" for one in facts["refused"])
            raise CommandError(f"{len(moved.refused)} refused: {why}")


def _act(tenant: Tenant, options: dict[str, Any]) -> Moved:
    act = Act(tenant, actor(), reason=options["reason"])
    try:
        match options["act"]:
            case "requeue":
                return requeue(seen(_chosen(tenant, options)), act)
            case "discard":
                return discard(seen(_chosen(tenant, options)), act)
            case "resolve":
                return resolve(seen(_chosen(tenant, options)), act)
            case _:
                return restore(seen(called(tenant, options["letters"]))[0], act)
    except ValueError as err:
        raise CommandError(str(err)) from None


def _chosen(tenant: Tenant, options: dict[str, Any]) -> list[DeadLetter]:
    """Return the letters named, or those the filters find; never all for want of a word."""
    if options["letters"] and narrows(options):
        raise CommandError("Name letters or give filters, not both.")
    if options["letters"]:
        return called(tenant, options["letters"])
    if not narrows(options):
        raise CommandError(
            "Name letters (DL-7) or give a filter; --status open means all open."
        )
    limit = conf().selection_max
    found = list(matching(tenant, options, now=timezone.now())[: limit + 1])
    if not found:
        raise CommandError("No letter matches.")
    if len(found) > limit:
        raise CommandError(f"More than {limit} letters match: narrow, or start a redrive.")
    return found


def _attempts(letter: DeadLetter) -> list[dict[str, Any]]:
    return [
        {
            "start": one.number,
            "round": one.round,
            "outcome": one.outcome,
            "started_at": moment(one.started_at),
            "ended_at": moment(one.ended_at),
            "worker": one.worker,
            "error": ": ".join(filter(None, (one.error_type, one.message))),
        }
        for one in letter.job.attempts.order_by("number", "pk")[: conf().page_size]
    ]
