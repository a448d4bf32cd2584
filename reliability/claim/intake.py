"""How a source's events are taken in: when a delivery is answered, and what waits for a person."""

from dataclasses import dataclass

from django.db import transaction

from reliability import sql
from reliability.claim.presets import PRESETS
from reliability.models import Source
from reliability.models.acting import Acting, Refused, alone, record


@dataclass(frozen=True, kw_only=True)
class Intake:
    """What is asked; ``None`` leaves it as it is."""

    answer: str | None = None
    hold_replays: bool | None = None


def set_intake(source: Source, wanted: Intake, act: Acting) -> Source | Refused:
    """Change how a source's events are taken in, from within 5 seconds on.

    Answering after work is refused for a provider that blocks, unsubscribes or never resends.
    What is as it is asked to be already is no change and leaves no audit entry.
    """
    if wanted.answer == Source.Answer.AFTER_WORK and (why := no_answer_after_work(source)):
        return Refused(f"{source.slug!r} cannot answer after work: {why}.")
    with transaction.atomic(using=sql.database().alias):
        alone(act)
        source.refresh_from_db(fields=["answer", "hold_replays"])
        asked = {name: value for name, value in vars(wanted).items() if value is not None}
        changes = {name: asked[name] for name in asked if asked[name] != getattr(source, name)}
        if changes:
            Source.objects.filter(pk=source.pk).update(**changes)
            record(act, "set intake", about="source", about_id=source.slug, **changes)
    source.refresh_from_db(fields=["answer", "hold_replays"])
    return source


def no_answer_after_work(source: Source) -> str:
    """Say why a source's provider cannot wait for the work; nothing where it can."""
    preset = PRESETS.get(source.preset) or PRESETS.get(source.scheme)
    return preset.no_answer_after_work if preset else ""
