"""The pages of alerts: what is silent and why, silences planned and ended, channels and tests."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from reliability.alerts.deliver import deliver
from reliability.alerts.shipped import ship_rules
from reliability.conf import conf
from reliability.models import (
    Alert,
    AlertDelivery,
    AlertRule,
    AuditEntry,
    LetterGroup,
    Silence,
    Source,
    Tenant,
)
from tests.console import rows

pytestmark = pytest.mark.django_db

ON_CALL = "on-call@acme.example"
HOUR = timedelta(hours=1)
FORM = {"from": "2026-03-02T12:00", "until": "2026-03-02T18:00", "reason": "ledger is moved"}


@pytest.fixture
def stripe(time_machine: Any) -> Source:
    time_machine.move_to(rows.NOON, tick=False)
    source = rows.source(rows.tenant("acme"))
    ship_rules(source.tenant, [ON_CALL])
    return source


@pytest.fixture
def operator(stripe: Source) -> Client:
    return rows.signed_in(rows.member(stripe.tenant, "operator"))


def _text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def _open(of: Source, **more: Any) -> Alert:
    now = timezone.now()
    return Alert.objects.create(
        **{
            "tenant": of.tenant, "rule": AlertRule.objects.get(measure="open letters"),
            "source": of, "status": "open", "since": now, "opened_at": now, "value": 40,
            "peak": 40,
        }
        | more
    )  # fmt: skip


# Why nobody is told.


def test_an_open_alert_says_that_it_is_silenced_and_until_when(
    stripe: Source, operator: Client
) -> None:
    _open(stripe, withheld="silenced", withheld_until=rows.NOON + HOUR)
    shown = _text(operator, "/alerts/")
    assert (
        "nobody<small>silenced until Mon 2 Mar 13:00 UTC: nobody is told before it ends"
        in shown
    )


def test_an_open_alert_says_how_much_of_it_is_muted(stripe: Source, operator: Client) -> None:
    _open(stripe, withheld="muted", uncounted=30)
    assert "muted: 30 of 40 count for no delivery" in _text(operator, "/alerts/")


def test_a_rule_says_that_a_redrive_drains_what_it_sees(
    stripe: Source, operator: Client
) -> None:
    AlertRule.objects.filter(measure="open letters").update(high=1, low=0)
    made = rows.redrive(stripe)
    said = "a running redrive drains it: judged again once that ends"
    assert said in _text(operator, "/alerts/")
    type(made).objects.update(state="stopped")
    assert said not in _text(operator, "/alerts/")


def test_a_rule_says_that_the_causes_it_counts_are_muted(
    stripe: Source, operator: Client
) -> None:
    AlertRule.objects.filter(measure="open letters").update(high=1, low=0)
    letter = rows.letter(stripe)
    LetterGroup.objects.create(
        tenant=stripe.tenant, source=stripe, kind=letter.kind, fingerprint="f1",
        muted_until=rows.NOON + HOUR, changed_at=rows.NOON, changed_by="ines",
    )  # fmt: skip
    assert "muted: 1 of 1 count for no delivery" in _text(operator, "/alerts/")


# Silences.


def test_an_operator_plans_a_silence_and_ends_it(stripe: Source, operator: Client) -> None:
    rule = AlertRule.objects.get(measure="open letters")
    form = FORM | {"source": "stripe-live", "rule": str(rule.public_id), "kind": "stripe.x"}
    assert operator.post("/alerts/silences/add/", form).status_code == 302
    planned = Silence.objects.get()
    assert (planned.source, planned.rule, planned.kind) == (stripe, rule, "stripe.x")
    assert (planned.from_at, planned.until_at) == (rows.NOON, rows.NOON + 6 * HOUR)
    shown = _text(operator, "/alerts/silences/")
    assert "1 silence is in force or planned." in shown
    assert "rule Open dead letters, stripe-live, letters of stripe.x" in shown
    assert "ledger is moved" in shown
    assert "1 silence is in force." in _text(operator, "/alerts/")

    operator.post(f"/alerts/silences/{planned.public_id}/end/", {"reason": "moved"})
    shown = _text(operator, "/alerts/silences/")
    assert "Nothing is silenced." in shown
    assert "ended by operator-acme" in shown
    acts = AuditEntry.objects.order_by("number").values_list("act", "actor", "reason")
    assert list(acts) == [
        ("silence alerts", "operator-acme", "ledger is moved"),
        ("end silence", "operator-acme", "moved"),
    ]


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"until": ""}, 400),
        ({"from": "yesterday"}, 400),
        ({"source": "adyen-eu"}, 400),
        ({"rule": "x"}, 400),
        ({"until": "2026-04-02T12:00"}, 302),
        ({"until": "2026-03-02T11:00"}, 302),
        ({"reason": ""}, 302),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused_and_nothing_changes(
    wrong: dict[str, str], status: int, stripe: Source, operator: Client
) -> None:
    rows.source(rows.tenant("globex"), "adyen-eu")
    answer = operator.post("/alerts/silences/add/", FORM | wrong)
    assert answer.status_code == status
    if status == 302:
        assert "Nothing has changed." in _text(operator, "/alerts/silences/")
    assert not Silence.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_silence_ends_once(stripe: Source, operator: Client) -> None:
    planned = rows.silence(stripe)
    for _ in range(2):
        operator.post(f"/alerts/silences/{planned.public_id}/end/")
    assert "It is over already." in _text(operator, "/alerts/silences/")
    assert AuditEntry.objects.count() == 1


def test_a_viewer_sees_silences_and_channels_and_no_button(stripe: Source) -> None:
    rows.silence(stripe)
    viewer = rows.signed_in(rows.member(stripe.tenant, "viewer"))
    for address in ("/alerts/silences/", "/alerts/"):
        shown = _text(viewer, address)
        for verb in ("/end/", "/add/", "/alerts/test/"):
            assert f'{verb}"' not in shown
    assert "stripe-live is moved" in _text(viewer, "/alerts/silences/")
    assert ON_CALL in _text(viewer, "/alerts/")


def test_silences_of_another_tenant_are_not_shown(stripe: Source, operator: Client) -> None:
    rows.silence(rows.source(rows.tenant("globex"), "adyen-eu"))
    shown = _text(operator, "/alerts/silences/")
    assert "adyen-eu" not in shown
    assert "No silence." in shown


# Channels.


def test_a_test_goes_the_way_of_the_alerts_and_its_result_is_shown(
    stripe: Source, operator: Client
) -> None:
    operator.post("/alerts/test/", {"email": ON_CALL})
    assert "A test to on-call@acme.example waits" in _text(operator, "/alerts/")
    assert mail.outbox == []
    deliver()
    assert [(sent.to, sent.subject) for sent in mail.outbox] == [
        ([ON_CALL], "[Reliability] Test of the alert mails")
    ]
    assert "</svg>sent</span> test 1" in _text(operator, "/alerts/")
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.about_id, entry.actor) == ("send test", ON_CALL, "operator-acme")


def test_a_test_that_failed_shows_its_error(
    stripe: Source, operator: Client, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    operator.post("/alerts/test/", {"email": ON_CALL})
    deliver()
    assert "ConnectionRefusedError" in _text(operator, "/alerts/")


@pytest.mark.parametrize("email", ["", "thief@evil.example", "other@globex.example"])
def test_no_test_goes_to_an_address_that_no_rule_of_the_tenant_names(
    email: str, stripe: Source, operator: Client
) -> None:
    ship_rules(rows.tenant("globex"), ["other@globex.example"])
    operator.post("/alerts/test/", {"email": email})
    assert "Nothing was sent." in _text(operator, "/alerts/")
    assert not AlertDelivery.objects.exists()


def test_a_second_test_waits_for_the_first(stripe: Source, operator: Client) -> None:
    operator.post("/alerts/test/", {"email": ON_CALL})
    operator.post("/alerts/test/", {"email": ON_CALL})
    assert "on its way already" in _text(operator, "/alerts/")
    assert AlertDelivery.objects.count() == 1


def test_tests_count_within_the_hours_limit_of_their_address(
    stripe: Source, operator: Client
) -> None:
    for _ in range(conf().mails_per_hour_max + 2):
        operator.post("/alerts/test/", {"email": ON_CALL})
        deliver()
    assert len(mail.outbox) == 30
    assert "that is the limit" in _text(operator, "/alerts/")


def test_every_number_of_deliveries_is_of_its_own_tenant(
    stripe: Source, operator: Client
) -> None:
    globex: Tenant = rows.tenant("globex")
    AlertDelivery.objects.create(
        tenant=globex, occasion="test 77", email=ON_CALL, value=0, counted_at=rows.NOON,
        due_at=rows.NOON,
    )  # fmt: skip
    assert "test 77" not in _text(operator, "/alerts/")
