"""The form of edit and requeue: what may be changed, what may not, and what is not even shown."""

import json
from collections.abc import Iterator

import pytest
from django.test import Client

from reliability.console.editing import CannotEdit, edited, fields
from reliability.models import Body, BodyEdit, DeadLetter, Job
from tests.console import rows
from tests.database import world

pytestmark = pytest.mark.django_db

KIND = "stripe.charge.refunded"
RAW = (
    b'{"id": "evt_1", "type": "charge.refunded", "livemode": true, "rate": 1.50, "data": {"object":'
    b' {"id": "ch_1", "object": "charge", "amount_refunded": 1840, "currency": "eur",'
    b' "receipt_email": "jo@customer.example", "metadata": {"cost/centre": "NL-02"}}}}'
)
CENTRE = "/data/object/metadata/cost~1centre"


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with world.local(KIND, lambda event: None):
        yield


@pytest.fixture
def letter() -> DeadLetter:
    return rows.letter(
        rows.source(rows.tenant(), preset="stripe"), "evt_1", claimed={"raw": RAW}
    )


def client(letter: DeadLetter, role: str = "operator") -> Client:
    return rows.signed_in(rows.member(letter.tenant, role))


def form(letter: DeadLetter, **changed: str) -> dict[str, str]:
    body = Body.objects.get(key=letter.job.key, first=True)
    sent = {"version": str(letter.job.version), "body": str(body.pk), "reason": "wrong centre"}
    return sent | {f"f{pointer}": value for pointer, value in changed.items()}


def send(letter: DeadLetter, **changed: str) -> int:
    path = f"/dead-letters/{letter.public_id}/edit/requeue/"
    return client(letter).post(path, form(letter, **changed)).status_code


def by_kind(letter: DeadLetter, *, revealed: bool = False) -> dict[str, str]:
    return {f.pointer: f.kind for f in fields(letter, RAW, revealed=revealed)}


def test_what_names_event_and_operation_is_locked_and_what_is_personal_sensitive(
    letter: DeadLetter,
) -> None:
    found = by_kind(letter)
    for pointer in ("/id", "/type", "/data/object/id", "/data/object/amount_refunded",
                    "/data/object/currency"):  # fmt: skip
        assert found[pointer] == "locked", pointer
    assert found["/data/object/receipt_email"] == "sensitive"
    assert found[CENTRE] == "free"


def test_the_page_shows_no_personal_value_until_it_is_revealed(letter: DeadLetter) -> None:
    operator = client(letter)
    path = f"/dead-letters/{letter.public_id}/edit/"
    assert b"jo@customer.example" not in operator.get(path).content
    operator.post(f"/dead-letters/{letter.public_id}/reveal/", {"reason": "asked by support"})
    assert b"jo@customer.example" in operator.get(path).content


def test_a_free_field_is_changed_and_everything_else_stays_byte_by_byte(
    letter: DeadLetter,
) -> None:
    assert send(letter, **{CENTRE: "NL-03"}) == 302
    new = bytes(Body.objects.get(key=letter.job.key, first=True).raw)
    assert b'"rate": 1.50' in new
    expected = json.loads(RAW)
    expected["data"]["object"]["metadata"]["cost/centre"] = "NL-03"
    assert json.loads(new) == expected
    assert BodyEdit.objects.get().changed == [CENTRE]
    assert Job.objects.get(pk=letter.job_id).state == "ready"
    shown = client(letter, "approver").get(f"/dead-letters/{letter.public_id}/").content
    assert b"version 2 by operator-acme" in shown


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/id", "evt_2"),
        ("/data/object/amount_refunded", "1"),
        ("/data/object/receipt_email", "eve@customer.example"),
        ("/livemode", "{}"),
        ("/rate", "cheap"),
    ],
)
def test_a_locked_hidden_or_unreadable_value_refuses_the_whole_edit(
    letter: DeadLetter, pointer: str, value: str
) -> None:
    assert send(letter, **{pointer: value, CENTRE: "NL-03"}) == 400
    assert not BodyEdit.objects.exists()
    assert Job.objects.get(pk=letter.job_id).state == "dead"


def test_an_edit_that_changes_nothing_says_so(letter: DeadLetter) -> None:
    assert send(letter) == 400
    assert not BodyEdit.objects.exists()


def test_a_viewer_has_neither_the_page_nor_the_button(letter: DeadLetter) -> None:
    viewer = client(letter, "viewer")
    assert viewer.get(f"/dead-letters/{letter.public_id}/edit/").status_code == 403
    assert b"/edit/" not in viewer.get(f"/dead-letters/{letter.public_id}/").content


@pytest.mark.parametrize("raw", [b"not json", b'{"a": 1, "a": 2}', b"[" + b"1," * 400 + b"1]"])
def test_a_body_that_cannot_be_written_back_is_no_form(letter: DeadLetter, raw: bytes) -> None:
    with pytest.raises(CannotEdit):
        fields(letter, raw, revealed=False)


def test_line_ends_of_a_browser_are_no_change(letter: DeadLetter) -> None:
    raw = b'{"note": "one\\ntwo"}'
    shown = fields(letter, raw, revealed=False)
    assert edited(raw, shown, {"f/note": "one\r\ntwo"})[1] == []
