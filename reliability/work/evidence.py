"""Whether a job's effect is in the world: asked of whoever knows, never guessed."""

from collections.abc import Iterable

from django.apps import apps
from django.db import router, transaction

from reliability.handlers import (
    Applied,
    CannotTell,
    Evidence,
    Kind,
    LocalTransaction,
    NotApplied,
    UniqueConstraint,
    find,
)
from reliability.models import Job
from reliability.work.lease import event_of


def evidence_of(job: Job) -> Evidence:
    """Ask about a job that nobody is working: its kind's ``verify``, else what its sink shows.

    May take as long as the provider does; call it outside transactions.
    """
    kind = find(job.kind)
    if kind is None:
        return CannotTell("no handler of this kind is installed")
    try:
        return _asked(kind, job)
    except Exception as error:  # noqa: BLE001 - whatever a verifier raises, we cannot tell
        return CannotTell(f"asking failed: {type(error).__name__}")


def _asked(kind: Kind, job: Job) -> Evidence:
    if kind.verify is not None:
        return kind.verify(event_of(job))
    match kind.sink:
        case LocalTransaction():
            # Effects and done mark commit together: a letter has none of either.
            return NotApplied()
        case UniqueConstraint():
            keys = {job.key.key: job.pk, job.key.downstream_key: job.pk}
            row = rows_by_key(kind.sink, keys).get(job.pk)
            return Applied(row) if row else NotApplied()
        case _:
            return CannotTell("this kind declares no way to verify")


def verifies(kind: Kind) -> bool:
    """Tell whether each letter of the kind must be asked about, one call each."""
    return kind.verify is not None


def sure(kind: Kind) -> bool:
    """Tell whether a dead letter of the kind has had no effect, by how it works."""
    return kind.verify is None and isinstance(kind.sink, LocalTransaction)


def rows_by_key(sink: UniqueConstraint, keys: dict[str, int]) -> dict[int, str]:
    """Find the rows a unique constraint would recognise: number by key in, number to row out.

    One statement, whatever the number of keys. Database errors pass through.
    """
    model = apps.get_model(sink.model)
    alias = router.db_for_read(model)
    with transaction.atomic(using=alias):
        found: Iterable[tuple[object, object]] = (
            model._default_manager.using(alias)  # noqa: SLF001 - Django's documented name
            .filter(**{f"{sink.field}__in": list(keys)})
            .values_list(sink.field, "pk")
        )
        return {keys[str(value)]: f"{sink.model} {pk}" for value, pk in found}
