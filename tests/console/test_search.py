"""Search of dead letters: every way to ask, strictly read; nothing a viewer may not see answers."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reliability.console import searching
from reliability.models import AuditEntry, DeadLetter, Redrive, RedriveMember, Tenant
from tests.console import rows

pytestmark = pytest.mark.django_db


def _keys(client: Client, **query: str) -> set[str]:
    answer = client.get("/dead-letters/", query)
    assert answer.status_code == 200, answer.content
    return set(re.findall(r"find=(evt_[a-z0-9_]+)", answer.content.decode()))


def test_a_piece_of_the_error_finds_its_letters_whatever_its_case(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    rows.letter(stripe, "evt_locked", message="422 Period_Locked: NL-02")
    rows.letter(stripe, "evt_other", message="timeout after 100 %")
    assert _keys(operator, text="period_locked") == {"evt_locked"}
    assert _keys(operator, text="00 %") == {"evt_other"}
    assert _keys(operator, text="perio%locked") == set()
    assert _keys(operator, text="period locked") == set()


def test_a_key_is_found_whole_or_by_its_beginning_and_never_by_its_middle(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    rows.letter(stripe, "evt_1")
    rows.letter(stripe, "evt_12")
    assert _keys(operator, key="evt_1") == {"evt_1"}
    assert _keys(operator, key_starts="evt_1") == {"evt_1", "evt_12"}
    assert _keys(operator, key_starts="vt_1") == set()
    assert _keys(operator, key_starts="evt%") == set()


def test_a_letter_is_found_by_the_key_its_downstream_saw(
    acme: Tenant, operator: Client
) -> None:
    stripe, globex = rows.source(acme), rows.source(rows.tenant("globex"))
    rows.letter(stripe, "evt_1")
    same = rows.letter(stripe, "evt_2").job.key
    same.downstream_key = same.key
    same.save()
    rows.letter(globex, "evt_3")
    assert _keys(operator, downstream="ik_evt_1") == {"evt_1"}
    assert _keys(operator, downstream="evt_2") == {"evt_2"}
    assert _keys(operator, downstream="evt_1") == set()
    assert _keys(operator, downstream="ik_evt_3") == set()


def test_an_amount_is_found_exactly_and_within_a_range_of_one_currency(
    acme: Tenant, operator: Client
) -> None:
    stripe = rows.source(acme)
    for name, minor, currency in (
        ("evt_a", 4200, "EUR"), ("evt_b", 4201, "EUR"), ("evt_c", 4200, "USD"),
        ("evt_d", -4200, "EUR"), ("evt_e", None, None),
    ):  # fmt: skip
        rows.letter(stripe, name, amount_minor=minor, currency=currency, exponent=2)
    assert _keys(operator, amount="4200", currency="EUR") == {"evt_a"}
    assert _keys(operator, amount="-4200", currency="eur") == {"evt_d"}
    assert _keys(operator, amount_min="4200", currency="EUR") == {"evt_a", "evt_b"}
    assert _keys(operator, amount_min="0", amount_max="4200", currency="EUR") == {"evt_a"}
    assert _keys(operator, currency="USD") == {"evt_c"}


def test_a_letter_is_found_by_when_it_died(acme: Tenant, operator: Client) -> None:
    stripe, now = rows.source(acme), timezone.now()
    rows.letter(stripe, "evt_new", buried_at=now - timedelta(hours=1))
    rows.letter(stripe, "evt_old", buried_at=now - timedelta(hours=30))
    a_day_ago = (now - timedelta(days=1)).isoformat()
    assert _keys(operator, died_since=a_day_ago) == {"evt_new"}
    assert _keys(operator, died_before=a_day_ago) == {"evt_old"}


BODY = (
    b'{"data": {"object": {"amount": 4200, "fee": 1.50, "live": true, "gone": null,'
    b' "note": "4200", "lines": [{"sku": "a-1"}, {"sku": "b=2"}], "email": "jo@shop.example"}}}'
)


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        ("data.object.amount=4200", True),
        ("data.object.amount=4200.0", True),
        ("data.object.amount=420", False),
        ("data.object.fee=1.5", True),
        ("data.object.note=4200", True),
        ("data.object.note=4200.0", False),
        ("data.object.live=true", True),
        ("data.object.live=1", False),
        ("data.object.gone=null", True),
        ("data.object.lines.0.sku=a-1", True),
        ("data.object.lines.1.sku=b=2", True),
        ("data.object.lines.2.sku=a-1", False),
        ("data.object.lines=a-1", False),
        ("data.object.nowhere=null", False),
    ],
)
def test_a_payload_is_found_by_the_value_at_a_place(
    acme: Tenant,
    operator: Client,
    asked: str,
    met: bool,  # noqa: FBT001 - what the table says
) -> None:
    rows.letter(rows.source(acme), "evt_it", claimed={"raw": BODY})
    assert _keys(operator, payload=asked) == ({"evt_it"} if met else set())


def test_a_body_that_is_not_strict_json_is_found_by_no_value(
    acme: Tenant, operator: Client
) -> None:
    rows.letter(rows.source(acme), "evt_twice", claimed={"raw": b'{"a": 1, "a": 2}'})
    assert _keys(operator, payload="a=2") == set()


def test_a_search_of_payloads_says_when_it_did_not_read_them_all(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe, now = rows.source(acme), timezone.now()
    for n in range(3):
        died = now - timedelta(minutes=n)
        rows.letter(stripe, f"evt_{n}", buried_at=died, claimed={"raw": b'{"a": 1}'})
    said = b"Not every payload was read."
    assert said not in operator.get("/dead-letters/?payload=a=1").content
    monkeypatch.setattr(searching, "PAYLOADS_MAX", 2)
    assert _keys(operator, payload="a=1") == {"evt_0", "evt_1"}
    assert said in operator.get("/dead-letters/?payload=a=1").content
    monkeypatch.setattr(searching, "PAYLOADS_MAX", 100)
    monkeypatch.setattr(searching, "PAYLOAD_BYTES_MAX", 4)
    assert said in operator.get("/dead-letters/?payload=a=1").content


def test_a_search_of_payloads_reads_what_the_other_filters_leave(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stripe, github = rows.source(acme), rows.source(acme, "github")
    rows.letter(github, "evt_it", claimed={"raw": b'{"a": 1}'})
    for n in range(3):
        rows.letter(stripe, f"evt_{n}", buried_at=timezone.now(), claimed={"raw": b"{}"})
    monkeypatch.setattr(searching, "PAYLOADS_MAX", 1)
    assert _keys(operator, payload="a=1", source="github") == {"evt_it"}


@pytest.mark.parametrize(
    "query",
    [
        "text=ab", "payload=nothing", "payload==4", "payload=a..b=4", "amount=4200",
        "amount=4.2&currency=EUR", "amount=x&currency=EUR", "amount_min=2&amount_max=1&currency=EUR",
        "currency=EURO", "amount=99999999999999999999&currency=EUR", "died_since=yesterday",
        "text=locked&status=all", "payload=a=1&status=requeued", "kind=%20", "text=%20%20%20",
        "tekst=locked",
    ],
)  # fmt: skip
def test_a_search_that_cannot_be_read_shows_nothing_and_freezes_nothing(
    acme: Tenant, operator: Client, query: str
) -> None:
    rows.letter(rows.source(acme))
    assert operator.get(f"/dead-letters/?{query}").status_code == 400
    assert operator.post("/redrives/freeze/", {"asked": query}).status_code == 400
    assert not Redrive.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("query", ["status=open", "status=all", "kind=", "status=open&kind="])
def test_a_filter_that_chooses_a_whole_list_is_no_filter_for_a_bulk_act(
    acme: Tenant, operator: Client, query: str
) -> None:
    rows.letter(rows.source(acme))
    assert operator.post("/redrives/freeze/", {"asked": query}).status_code == 400
    assert not Redrive.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "text=period_locked", "payload=a=1", "amount_min=100&currency=EUR", "downstream=ik_evt_0",
        "key_starts=evt_0",
    ],
)  # fmt: skip
def test_a_preview_freezes_exactly_what_the_list_shows(
    acme: Tenant, operator: Client, query: str
) -> None:
    stripe = rows.source(acme)
    rows.letter(
        stripe, "evt_0", amount_minor=100, currency="EUR", exponent=2,
        claimed={"raw": b'{"a": 1}'},
    )  # fmt: skip
    rows.letter(stripe, "evt_other", message="timeout", claimed={"raw": b'{"a": 2}'})
    answer = operator.post("/redrives/freeze/", {"asked": query})
    assert answer.status_code == 302
    frozen = RedriveMember.objects.values_list("letter__job__key__key", flat=True)
    assert list(frozen) == ["evt_0"]
    assert Redrive.objects.get().asked.replace("%3D", "=") == query


def test_a_search_without_a_match_freezes_nothing(acme: Tenant, operator: Client) -> None:
    rows.letter(rows.source(acme))
    assert operator.post("/redrives/freeze/", {"asked": "payload=a=9"}).status_code == 400
    assert not Redrive.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "payload=data.object.email=jo", "payload=data.object.note=jo@shop.example",
        "payload=data.holder.x=1", "text=jo@shop.example", "text=4242424242424242", "text=jo@sh", "text=42424",
    ],
)  # fmt: skip
def test_a_viewer_cannot_ask_for_what_is_kept_back_from_viewers(
    acme: Tenant, operator: Client, query: str
) -> None:
    rows.letter(rows.source(acme), "evt_it", claimed={"raw": BODY})
    viewer = rows.signed_in(rows.member(acme, "viewer"))
    assert viewer.get(f"/dead-letters/?{query}").status_code == 400
    assert operator.get(f"/dead-letters/?{query}").status_code == 200
    assert viewer.get("/dead-letters/?payload=data.object.amount=4200").status_code == 200


def test_a_search_keeps_its_filters_in_the_address_after_an_act(
    acme: Tenant, operator: Client
) -> None:
    letter = rows.letter(rows.source(acme))
    data = {"letter": f"{letter.public_id}:1", "back": "text=period_locked&age="}
    answer: Any = operator.post("/dead-letters/requeue/", data)
    assert answer.url == "/dead-letters/?text=period_locked&age="


def test_a_list_that_takes_too_long_says_so_and_is_not_empty(
    acme: Tenant, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.letter(rows.source(acme))
    monkeypatch.setattr(searching, "SEARCH_SECONDS_MAX", 0.05)
    monkeypatch.setattr(
        "reliability.console.risk.at_risk",
        lambda found: list(DeadLetter.objects.raw("SELECT *, pg_sleep(1) FROM reliability_deadletter")),
    )  # fmt: skip
    answer = operator.get("/dead-letters/?kind=x")
    assert answer.status_code == 503
    assert b"Failed to load." in answer.content
    assert b"No letter matches" not in answer.content
