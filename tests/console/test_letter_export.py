"""The export of a list: what the list shows, redacted, harmless to spreadsheets, on record."""

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client

from reliability.console import letter_export
from reliability.models import AuditEntry, Tenant
from tests.console import rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(acme: Tenant) -> Client:
    return rows.signed_in(rows.member(acme, "viewer", "ida"))


def _csv(client: Client, asked: str = "") -> list[dict[str, str]]:
    answer: Any = client.post("/dead-letters/export/csv/", {"asked": asked})
    assert answer.status_code == 200
    text = b"".join(answer.streaming_content).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_file_holds_what_the_list_shows_and_nothing_else(
    acme: Tenant, viewer: Client
) -> None:
    stripe, github = rows.source(acme), rows.source(acme, "github")
    rows.letter(stripe, "evt_1", amount_minor=-1840, currency="EUR", exponent=2)
    rows.letter(stripe, "evt_closed", status="discarded")
    rows.letter(github, "evt_github")
    rows.letter(rows.source(rows.tenant("globex"), "adyen-eu"), "evt_theirs")
    (row,) = _csv(viewer, "source=stripe-live")
    assert (row["key"], row["downstream_key"]) == ("evt_1", "ik_evt_1")
    assert (row["amount"], row["currency"]) == ("-18.40", "EUR")
    assert {row["key"] for row in _csv(viewer)} == {"evt_1", "evt_github"}
    assert {row["key"] for row in _csv(viewer, "status=discarded")} == {"evt_closed"}


def test_every_export_is_on_record_with_its_filter_and_its_number(
    acme: Tenant, viewer: Client
) -> None:
    rows.letter(rows.source(acme))
    _csv(viewer, "source=stripe-live")
    (entry,) = AuditEntry.objects.all()
    assert (entry.act, entry.actor) == ("export", "ida")
    assert entry.facts == {"count": 1, "file_format": "csv", "asked": "source=stripe-live"}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_no_cell_begins_a_formula(acme: Tenant, viewer: Client, start: str) -> None:
    text = f'{start}HYPERLINK("x")'
    rows.letter(
        rows.source(acme), text.strip(), message=text, error_type=text, reason=text, fingerprint=text,
        claimed={"kind": text},
    )  # fmt: skip
    (row,) = _csv(viewer)
    for name in ("kind", "error", "error_class", "reason", "cause"):
        assert row[name] == f"'{text}", name
    assert not row["key"].startswith(("=", "+", "-", "@"))


def test_personal_data_of_errors_is_kept_back_from_files(acme: Tenant, viewer: Client) -> None:
    rows.letter(
        rows.source(acme), message="jo@shop.example paid with 4242424242424242",
        reason="jo@shop.example", fingerprint="KeyError jo@shop.example",
    )  # fmt: skip
    for ending in ("csv", "json"):
        answer: Any = viewer.post(f"/dead-letters/export/{ending}/")
        text = b"".join(answer.streaming_content).decode()
        assert "jo@shop" not in text
        assert "4242424242424242" not in text
        assert "redacted: e-mail" in text


def test_json_keeps_minor_units_and_reads_as_json(acme: Tenant, viewer: Client) -> None:
    stripe = rows.source(acme)
    rows.letter(stripe, "evt_1", amount_minor=500, currency="JPY", exponent=0)
    rows.letter(stripe, "evt_2")
    answer: Any = viewer.post("/dead-letters/export/json/", {"asked": ""})
    letters = json.loads(b"".join(answer.streaming_content))["letters"]
    assert {letter["key"] for letter in letters} == {"evt_1", "evt_2"}
    (yen,) = [letter for letter in letters if letter["key"] == "evt_1"]
    assert (yen["amount_minor"], yen["currency"], yen["exponent"]) == (500, "JPY", 0)


def test_a_file_is_read_page_by_page_to_its_end(
    acme: Tenant, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe = rows.source(acme)
    expected = [rows.letter(stripe, f"evt_{n}").job.key.key for n in range(5)]
    monkeypatch.setattr(letter_export, "ROWS_PER_FETCH", 2)
    assert [row["key"] for row in _csv(viewer)] == expected[::-1]


def test_a_file_is_never_cut_without_a_word(
    acme: Tenant, viewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe = rows.source(acme)
    for _ in range(3):
        rows.letter(stripe)
    monkeypatch.setattr(letter_export, "LETTERS_MAX", 2)
    assert viewer.post("/dead-letters/export/csv/").status_code == 400
    assert not AuditEntry.objects.exists()


def test_a_misspelt_filter_exports_nothing(acme: Tenant, viewer: Client) -> None:
    rows.letter(rows.source(acme))
    for query in ("soruce=stripe-live", "text=x", "status=opne"):
        answer = viewer.post("/dead-letters/export/csv/", {"asked": query})
        assert answer.status_code == 400
    assert not AuditEntry.objects.exists()
