"""`manage.py intake`: how a source's events are taken in, and how its provider is asked."""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from reliability.claim.intake import Intake, set_intake
from reliability.management.asking import actor, done, source_called, tenant_called
from reliability.management.printing import say_facts, say_json
from reliability.models import ApiCredential, AuditEntry, Source
from reliability.work.dead_letters import Act

ANSWERS = {"at-once": Source.Answer.AT_ONCE, "after-work": Source.Answer.AFTER_WORK}
YES_NO = {"yes": True, "no": False}


class Command(BaseCommand):
    help = "Show or set how a source's events are taken in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", help="the source")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--answer", choices=ANSWERS, help="when a delivery is answered")
        parser.add_argument("--hold-replays", choices=YES_NO,
                            help="an equal body under a new unsigned id waits for a person")  # fmt: skip
        parser.add_argument("--credential-from-env", metavar="NAME",
                            help="the variable with the provider's API key, or client id:secret")  # fmt: skip
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        source = source_called(options["slug"], tenant_called(options["tenant"]))
        found = _set(source, options)
        (say_json if options["json"] else say_facts)(self.stdout, found)


@transaction.atomic
def _set(source: Source, options: dict[str, Any]) -> dict[str, Any]:
    wanted = Intake(
        answer=ANSWERS.get(options["answer"]), hold_replays=YES_NO.get(options["hold_replays"])
    )
    done(set_intake(source, wanted, Act(source.tenant, actor())))
    if variable := options["credential_from_env"]:
        ApiCredential.keep(source, _from_environment(variable))
        AuditEntry.objects.record(
            source.tenant, actor=actor(), act="set intake", about="source",
            about_id=source.slug, credential="replaced",
        )  # fmt: skip
    return _facts(source)


def _from_environment(variable: str) -> str:
    text = os.environ.get(variable, "")
    if not text.strip():
        raise CommandError(f"The environment variable {variable} is empty or not set.")
    return text


def _facts(source: Source) -> dict[str, Any]:
    credential = ApiCredential.objects.filter(source=source).first()
    return {
        "source": source.slug,
        "destination": source.destination.slug if source.destination else None,
        "answer": source.answer,
        "hold_replays": source.hold_replays,
        "credential": f"ends in {credential.last_four}" if credential else None,
    }
