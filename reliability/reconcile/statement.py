"""From a file to a statement: read lazily, stored in batches, its figures kept beside its lines."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from itertools import chain

from django.db import OperationalError, transaction
from django.db.models import Max
from django.utils import timezone

from reliability import sql
from reliability.errors import TryAgain
from reliability.models import Artefact, Source, Statement, StatementLine
from reliability.reconcile import local_day
from reliability.reconcile.artefact import opened, receive
from reliability.reconcile.figures import declared_as_json, declared_from_json, tally_as_json
from reliability.reconcile.formats import read
from reliability.reconcile.formats.base import (
    Declared,
    Item,
    Mode,
    SourceRules,
    StatementError,
)
from reliability.reconcile.lines import LineWriter, copied
from reliability.reconcile.reading import Told, noted
from reliability.reconcile.scope import OPTIONS, Scope, scope_of

__all__ = ["Refused", "import_statement", "latest", "receive"]


@dataclass(frozen=True)
class Refused:
    """A file that is no statement of its source: file, line, rule and remedy in one sentence."""

    artefact: Artefact
    sentence: str


def import_statement(
    artefact: Artefact, day: date, *, told: Told | None = None
) -> Statement | Refused:
    """Read a kept file as its source's statement of one local day.

    A day that has a statement gets a further revision; the file it has already changes nothing.
    Of a file with several statements the one of ``day`` is taken. A refusal is kept with the
    artefact. ``told`` hears every so often how many lines are read; the page reads that from
    a ``Reading``. Raises ``TryAgain`` while another import or compare of the source runs.
    """
    with noted(artefact, told) as progress:
        return _imported(artefact, day, progress)


def _imported(artefact: Artefact, day: date, progress: Told) -> Statement | Refused:
    alias = sql.database().alias
    with transaction.atomic(using=alias):
        sql.command("SET LOCAL statement_timeout = '15min'")
        source = one_at_a_time(artefact.source_id)
        newest = latest(source, day)
        if newest and newest.artefact_id == artefact.pk:
            return newest
        Artefact.objects.filter(pk=artefact.pk).update(day=day)
        try:
            with transaction.atomic(using=alias):
                return _stored(source, artefact, day, progress)
        except StatementError as error:
            return _refuse(artefact, day, error)


def one_at_a_time(source_id: int) -> Source:
    """Lock the source's imports and compares until the transaction ends; claims go on meanwhile.

    Raises ``TryAgain`` where somebody holds them for longer than the lock timeout.
    """
    try:
        return Source.objects.select_for_update(no_key=True).get(pk=source_id)
    except OperationalError as error:
        raise TryAgain("another compare of this source is running; ask again") from error


def latest(source: Source, day: date) -> Statement | None:
    """Return the newest revision of a day's statement."""
    found = Statement.objects.filter(source=source, day=day).select_related("artefact")
    return found.order_by("-revision").first()


def rules_of(source: Source) -> SourceRules:
    """Return how a source's files are to be read."""
    options = source.statement_options
    mode: Mode = "test" if source.mode == Source.Mode.TEST else "live"
    said = options.get("declared")
    return SourceRules(
        zone=source.zone,
        account=source.account,
        mode=mode,
        options={name: value for name, value in options.items() if name not in OPTIONS},
        exponents=options.get("exponents", {}),
        declared=declared_from_json(said) if said else None,
    )


def scope_for(source: Source) -> Scope:
    """Return what a source's compare covers. Raises ``StatementError`` for a bad set-up."""
    return scope_of(
        source.statement_format,
        source.statement_kinds,
        source.statement_options,
        grace_hours=source.grace_hours,
    )


def _refuse(artefact: Artefact, day: date, error: StatementError) -> Refused:
    sentence = f"{artefact.name}, {day}: {error}"
    Artefact.objects.filter(pk=artefact.pk).update(refused=sentence)
    artefact.day, artefact.refused = day, sentence
    return Refused(artefact, sentence)


def _stored(source: Source, artefact: Artefact, day: date, progress: Told) -> Statement:
    kept: list[Statement] = []
    fitting: list[Statement] = []
    with opened(artefact) as stream:
        items = read(source.statement_format, stream, rules_of(source))
        for first in items:
            begun = _begun(source, artefact, day)
            with copied(begun, scope_for(source), progress) as writer:
                declared = _written(writer, chain([first], items))
            kept.append(_finished(writer, declared))
            if _speaks_of(declared, day, source.zone):
                fitting.append(kept[-1])
    return _the_one(kept, fitting, day)


def _written(writer: LineWriter, items: Iterable[Item]) -> Declared:
    """Write one statement's lines, and return what it declares of itself, which comes last."""
    for item in items:
        if isinstance(item, Declared):
            return item
        writer.add(item)
    raise StatementError(writer.tally.rows, "the statement has no end", "fetch it again")


def _begun(source: Source, artefact: Artefact, day: date) -> Statement:
    revisions = Statement.objects.filter(source=source, day=day)
    newest = revisions.aggregate(newest=Max("revision"))["newest"] or 0
    return Statement.objects.create(
        tenant_id=source.tenant_id,
        source=source,
        artefact=artefact,
        statement_format=source.statement_format,
        day=day,
        revision=newest + 1,
        created_at=timezone.now(),
    )


def _finished(writer: LineWriter, declared: Declared) -> Statement:
    statement = writer.finish()
    statement.declared = declared_as_json(declared)
    statement.computed = tally_as_json(writer.tally)
    statement.quarantined = writer.quarantined
    statement.line_count = writer.tally.lines
    statement.sequence = str(declared.sequence or "")
    statement.save()
    return statement


def _speaks_of(declared: Declared, day: date, zone: str) -> bool:
    """Say whether a statement's own period, if it names one, holds ``day``."""
    first, last = declared.first_day, declared.last_day
    if declared.period_start:
        first = local_day.day_of(declared.period_start, zone)
    return (first is None or first <= day) and (last is None or day <= last)


def _the_one(kept: list[Statement], fitting: list[Statement], day: date) -> Statement:
    """Keep the day's statement of several; a lone one stays whatever it says, for the gates."""
    chosen = kept if len(kept) == 1 else fitting
    if len(chosen) != 1:
        rule = f"of {len(kept)} statements in the file {len(chosen)} are of {day}"
        raise StatementError(0, rule, f"give the one statement of {day}")
    [one], revision = chosen, kept[0].revision
    others = [statement.pk for statement in kept if statement != one]
    StatementLine.objects.filter(statement__in=others).delete()
    Statement.objects.filter(pk__in=others).delete()
    Statement.objects.filter(pk=one.pk).update(revision=revision)
    one.revision = revision
    return one
