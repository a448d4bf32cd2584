"""`manage.py source`: add or list sources, rotate a signing secret, pause and resume."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from reliability.claim.presets import PRESETS
from reliability.claim.sources import Wanted, add_source, rotate_secret
from reliability.management.asking import actor, done, pairs, source_called, tenant_called
from reliability.management.new_source import address, secret_from
from reliability.management.printing import say_facts, say_json, say_table
from reliability.models import Source, Tenant
from reliability.reconcile.formats import FORMATS
from reliability.work.dead_letters import Act
from reliability.work.holds import pause_source, resume_source

ONCE = "Shown this once; only its last four characters can be seen again."
NO_BASE = "Put your host before it, or set RELIABILITY_BASE_URL."


class Command(BaseCommand):
    help = (
        "Add a source (prints its URL and secret once), list sources, rotate a secret, pause."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True)
        add = acts.add_parser("add", help="add a source")
        _describe_add(add)
        rotate = acts.add_parser("rotate", help="give it a new secret; the old one works 24 h")
        pause = acts.add_parser("pause", help="take its events in, and hold them")
        resume = acts.add_parser("resume", help="end its pause")
        for one in (pause, resume):
            one.add_argument("--reason", default="", help="kept with its audit entry")
        for one in (add, rotate, pause, resume):
            one.add_argument("slug")
            one.add_argument("--tenant", required=True, metavar="SLUG")
        for one in (add, rotate):
            one.add_argument(
                "--secret-from-env",
                metavar="NAME",
                help="the variable with the provider's secret",
            )
        shown = acts.add_parser("list", help="list the sources")
        shown.add_argument("--tenant", metavar="SLUG", help="of this tenant only")
        for one in acts.choices.values():
            one.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        match options["act"]:
            case "add":
                wanted = _wanted(options)
                found = _add(wanted, options["tenant"], variable=options["secret_from_env"])
            case "rotate":
                found = _rotate(
                    options["slug"], options["tenant"], variable=options["secret_from_env"]
                )
            case "pause" | "resume" as verb:
                found = _hold(options, paused=verb == "pause")
            case _:
                return self._list(options["tenant"], as_json=options["json"])
        return (say_json if options["json"] else say_facts)(self.stdout, found)

    def _list(self, tenant: str | None, *, as_json: bool) -> None:
        rows = _rows(tenant_called(tenant) if tenant else None)
        if as_json:
            say_json(self.stdout, rows)
        else:
            say_table(self.stdout, f"Sources: {len(rows)}", rows)


def _describe_add(add: CommandParser) -> None:
    add.add_argument("--preset", required=True, help=", ".join(PRESETS))
    add.add_argument("--mode", default=Source.Mode.LIVE, help="live or test")
    add.add_argument("--account", default="", help="the account's id at the provider")
    add.add_argument("--zone", help="in which the provider's day closes")
    add.add_argument("--statement-format", help="how its daily statement is written")
    for name, what in (
        ("option", "of the scheme, name=value; repeatable"),
        ("statement-option", "of the statement's format, name=value; repeatable"),
        ("statement-kind", "an operation class the statement lists; repeatable"),
    ):
        add.add_argument(f"--{name}", action="append", default=[], help=what)


def _wanted(options: dict[str, Any]) -> Wanted:
    return Wanted(
        slug=options["slug"],
        preset=options["preset"],
        mode=options["mode"],
        account=options["account"],
        zone=options["zone"],
        statement_format=options["statement_format"],
        statement_options=pairs("statement-option", options["statement_option"]),
        statement_kinds=tuple(options["statement_kind"]),
        options=pairs("option", options["option"]),
    )


def _add(wanted: Wanted, tenant_slug: str, *, variable: str | None) -> dict[str, Any]:
    act = Act(tenant_called(tenant_slug), actor())
    outcome = add_source(
        wanted, act, formats=FORMATS, secret=secret_from(variable, wanted.preset)
    )
    added = done(outcome)
    return _facts(added.source, added.secret)


def _rotate(slug: str, tenant_slug: str, *, variable: str | None) -> dict[str, Any]:
    tenant = tenant_called(tenant_slug)
    source = source_called(slug, tenant)
    outcome = rotate_secret(
        source, Act(tenant, actor()), secret=secret_from(variable, source.preset)
    )
    rotated = done(outcome)
    said = {"old_secret_works_until": rotated.until.isoformat(timespec="seconds")}
    return _facts(source, rotated.secret) | said


def _hold(options: dict[str, Any], *, paused: bool) -> dict[str, Any]:
    tenant = tenant_called(options["tenant"])
    source = source_called(options["slug"], tenant)
    act = Act(tenant, actor(), reason=options["reason"])
    facts: dict[str, Any] = {"source": source.slug, "tenant": tenant.slug, "paused": paused}
    if paused:
        return facts | {"jobs_held": pause_source(source, act)}
    return facts | {"jobs_freed": resume_source(source, act)}


def _facts(source: Source, secret: str) -> dict[str, Any]:
    """Say where to deliver to; the secret only where it was made here."""
    url = address(source)
    facts = {"tenant": source.tenant.slug, "source": source.slug, "preset": source.preset}
    facts |= {"url": url} | ({} if url.startswith("http") else {"note": NO_BASE})
    return facts | ({"secret": secret, "secret_note": ONCE} if secret else {})


def _rows(tenant: Tenant | None) -> list[dict[str, Any]]:
    sources = Source.objects.filter(internal=False).select_related("tenant")
    return [
        {
            "tenant": source.tenant.slug,
            "source": source.slug,
            "preset": source.preset,
            "mode": source.mode,
            "zone": source.zone,
            "statement": source.statement_format,
            "paused": "yes" if source.paused_at else "",
            "url": address(source),
        }
        for source in (sources.filter(tenant=tenant) if tenant else sources).order_by(
            "tenant__slug", "slug"
        )
    ]
