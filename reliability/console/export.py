"""A report as a file: CSV for spreadsheets, guarded against formulas, and JSON for programs."""

import codecs
import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from reliability.console.access import OperatorRequest
from reliability.console.compared import CAUSES, WORDS
from reliability.console.filters import NotUnderstood
from reliability.currencies import major
from reliability.models import Report, Verdict

#: OWASP, "CSV Injection": a cell that starts with one of these may run as a formula.
STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
ROWS_PER_FETCH = 2_000
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
DECIMALS = {"point": ".", "comma": ","}


@dataclass(frozen=True)
class Shape:
    """How a CSV is written: separator, decimal mark, and a byte order mark or none."""

    separator: str
    decimal: str
    bom: bool


def shape_of(request: OperatorRequest) -> Shape:
    """Read the shape a person chose. Raises NotUnderstood for anything else."""
    asked = request.GET
    known = {"separator": set(SEPARATORS), "decimal": set(DECIMALS), "bom": {"yes", "no"}}
    for name, value in asked.items():
        if value not in known.get(name, ()):
            raise NotUnderstood(f"Export option not understood: “{name}={value}”.")
    return Shape(
        SEPARATORS[asked.get("separator", "comma")],
        DECIMALS[asked.get("decimal", "point")],
        asked.get("bom", "no") == "yes",
    )


def guarded(text: str) -> str:
    """Return a text cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(STARTS_A_FORMULA) else text


def verdict_rows(report: Report) -> "QuerySet[Verdict]":
    """Return every verdict of the report, in the order it was stored."""
    rows = Verdict.objects.filter(report=report).select_related("line").order_by("pk")
    return rows.defer("line__raw", "line__references")


def as_csv(report: Report, shape: Shape) -> Iterator[bytes]:
    """Write the report's verdicts, one amount column per currency and side; lazily."""
    currencies = sorted({name.partition("/")[0] for name in report.bridge})
    sheet = io.StringIO()
    writer = csv.writer(sheet, delimiter=shape.separator, lineterminator="\r\n")
    names = [f"{side} {one}" for one in currencies for side in ("theirs", "ours")]
    writer.writerow(["verdict", "cause", "class", "reference", "line", "their id", *names])
    if shape.bom:
        yield codecs.BOM_UTF8
    for verdict in verdict_rows(report).iterator(chunk_size=ROWS_PER_FETCH):
        writer.writerow(_cells(verdict, currencies, shape.decimal))
        if sheet.tell() > 64 * 1024:
            yield _taken(sheet)
    yield _taken(sheet)


def _taken(sheet: io.StringIO) -> bytes:
    text = sheet.getvalue()
    sheet.seek(0)
    sheet.truncate()
    return text.encode()


def _cells(verdict: Verdict, currencies: list[str], decimal: str) -> list[str]:
    line = verdict.line
    words = [
        WORDS[verdict.verdict],
        CAUSES.get(verdict.cause, verdict.cause),
        verdict.operation_class or "",
        verdict.reference or "",
    ]
    place = [str(line.position) if line else "", (line.provider_id or "") if line else ""]
    theirs = major(verdict.their_minor, verdict.exponent, decimal)
    ours = major(verdict.our_minor, verdict.our_exponent or verdict.exponent, decimal)
    amounts = []
    for currency in currencies:
        amounts.append(theirs if currency == verdict.currency else "")
        amounts.append(ours if currency == (verdict.our_currency or verdict.currency) else "")
    return [*map(guarded, [*words, *place]), *amounts]


def as_json(report: Report) -> Iterator[bytes]:
    """Write the report with its verdicts as one JSON object; lazily."""
    head = json.dumps(_facts(report), ensure_ascii=False, default=str)
    yield f'{head[:-1]}, "verdicts": ['.encode()
    between = ""
    for verdict in verdict_rows(report).iterator(chunk_size=ROWS_PER_FETCH):
        yield f"{between}{json.dumps(_verdict(verdict), ensure_ascii=False)}".encode()
        between = ",\n"
    yield b"]}\n"


def _facts(report: Report) -> dict[str, Any]:
    statement = report.statement
    return {
        "source": report.source.slug,
        "day": report.day,
        "zone": report.source.zone,
        "starts_at": report.starts_at.isoformat(),
        "ends_at": report.ends_at.isoformat(),
        "version": report.version,
        "completeness": report.completeness,
        "forced": {
            "asked_by": report.force_asked_by,
            "agreed_by": report.forced_by,
            "reason": report.force_reason,
        }
        if report.forced_by
        else None,
        "inputs_sha256": bytes(report.inputs_sha256).hex(),
        "file": {
            "name": statement.artefact.name,
            "sha256": bytes(statement.artefact.sha256).hex(),
            "revision": statement.revision,
        }
        if statement
        else None,
        "gates": report.gates,
        "counts": report.counts,
        "bridge": report.bridge,
        "prepared_by": report.prepared_by,
        "signed_by": report.signed_by,
        "signed_at": report.signed_at and report.signed_at.isoformat(),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "verdict": verdict.verdict,
        "cause": verdict.cause,
        "class": verdict.operation_class,
        "reference": verdict.reference,
        "line": verdict.line.position if verdict.line else None,
        "their_minor": verdict.their_minor,
        "our_minor": verdict.our_minor,
        "currency": verdict.currency,
        "exponent": verdict.exponent,
        "our_currency": verdict.our_currency,
        "our_exponent": verdict.our_exponent,
    }
