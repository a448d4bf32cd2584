"""Giving a day its statement: upload, look at what would change, then let it count."""

from datetime import date
from typing import BinaryIO, cast

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import redirect

from reliability.conf import conf
from reliability.console import compared
from reliability.console.access import OperatorRequest, act, for_tenant, owned
from reliability.console.filters import NotUnderstood
from reliability.console.pages import show
from reliability.errors import TryAgain
from reliability.models import Artefact, Report, Source, Statement
from reliability.reconcile.day import NothingToCompare
from reliability.reconcile.formats.base import StatementError
from reliability.reconcile.planner import compare_onwards
from reliability.reconcile.preview import preview
from reliability.reconcile.statement import Refused, import_statement, receive


@act(needs="upload_statement")
def upload(request: OperatorRequest) -> HttpResponse:
    """Keep a file; then read it as the day's statement and compare, or only show what would be."""
    source, day = _asked_for(request)
    given = _file(request)
    if (given.size or 0) > conf().upload_bytes_max:
        size = conf().upload_bytes_max // 1024 // 1024
        why = f"more than {size} MB. Use manage.py reconcile --file for larger ones"
        return _refused(request, f"{given.name}: {why}")
    who = request.user.get_username()
    content = cast("BinaryIO", given.file)
    try:
        artefact = receive(source, name=given.name or "statement", content=content, by=who)
    except StatementError as error:
        return _refused(request, f"{given.name}: {error}")
    if "preview" in request.POST:
        return _preview(request, artefact, day)
    return _count(request, artefact, day)


@act(needs="upload_statement")
def confirm(request: OperatorRequest, public_id: str) -> HttpResponse:
    """Let a file that was looked at count."""
    artefact = owned(request, Artefact.objects.select_related("source"), public_id=public_id)
    return _count(request, artefact, _day(request))


def _asked_for(request: OperatorRequest) -> tuple[Source, date]:
    sources = for_tenant(request, Source.objects.filter(internal=False))
    source = sources.filter(slug=request.POST.get("source", "")).first()
    if source is None:
        raise NotUnderstood("The form names no source of this tenant.")
    return source, _day(request)


def _day(request: OperatorRequest) -> date:
    try:
        return date.fromisoformat(request.POST.get("day", ""))
    except ValueError:
        raise NotUnderstood("The form names no day.") from None


def _file(request: OperatorRequest) -> "UploadedFile[bytes]":
    given = request.FILES.get("file")
    if given is None or given.file is None:
        raise NotUnderstood("No file was chosen.")
    return given


def _preview(request: OperatorRequest, artefact: Artefact, day: date) -> HttpResponse:
    try:
        found = preview(artefact, day)
    except (NothingToCompare, StatementError, TryAgain) as error:
        return _refused(request, str(error))
    if isinstance(found, Refused):
        return _refused(request, f"Refused. {found.sentence}")
    words = [(compared.WORDS[name], n) for name, n in found.counts.items()]
    context = {"artefact": artefact, "day": day, "found": found, "words": words}
    return show(request, "reports/preview.html", context)


def _count(request: OperatorRequest, artefact: Artefact, day: date) -> HttpResponse:
    try:
        read = import_statement(artefact, day)
        if isinstance(read, Refused):
            messages.error(request, f"Refused. {read.sentence}.")
        elif artefact.seen_again and _has_report(read):
            messages.success(request, "These bytes were seen before: nothing has changed.")
        report = compare_onwards(artefact.source, day, by=request.user.get_username())
    except (NothingToCompare, StatementError, TryAgain) as error:
        return _refused(request, str(error))
    return redirect("console:report", report.public_id)


def _has_report(statement: Statement) -> bool:
    return Report.objects.filter(statement=statement, current=True).exists()


def _refused(request: OperatorRequest, why: str) -> HttpResponse:
    messages.error(request, f"{why.rstrip('.')}.")
    return redirect("console:reports")
