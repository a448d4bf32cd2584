"""Rules and channels in the console: an admin adds, changes and removes; nobody else can."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reliability.alerts.deliver import deliver
from reliability.alerts.evaluate import evaluate
from reliability.alerts.shipped import ship_rules
from reliability.models import (
    Alert,
    AlertChannel,
    AlertDelivery,
    AlertRule,
    AuditEntry,
    Source,
)
from tests.console import rows
from tests.database.elsewhere import Says, allow_loopback, serving

pytestmark = pytest.mark.django_db

ON_CALL = "on-call@acme.example"
RULE = {
    "measure": "open letters", "name": "Charges that died", "high": "5", "low": "1",
    "source": "stripe-live", "kind": "stripe.charge.succeeded", "cause": "", "currency": "",
    "hold": "60", "remind": "0", "emails": f"{ON_CALL}\nlead@acme.example", "owner": "Ines",
    "reason": "too late last week",
}  # fmt: skip
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7/#on-call"


@pytest.fixture
def stripe(time_machine: Any) -> Source:
    time_machine.move_to(rows.NOON, tick=False)
    source = rows.source(rows.tenant("acme"))
    ship_rules(source.tenant, [ON_CALL])
    return source


@pytest.fixture
def admin(stripe: Source) -> Client:
    return rows.signed_in(rows.member(stripe.tenant, "admin"))


def _text(client: Client, address: str = "/alerts/") -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def _acts() -> list[tuple[str, str, str]]:
    entries = AuditEntry.objects.order_by("number")
    return list(entries.values_list("act", "actor", "reason"))


# Rules.


def test_an_admin_adds_a_rule_and_the_list_shows_its_figure_with_the_rows_behind(
    stripe: Source, admin: Client
) -> None:
    channel = rows.channel(stripe)
    letter = rows.letter(stripe)
    form = RULE | {"kind": letter.kind, "channel": str(channel.public_id)}
    assert admin.post("/alert-rules/add/", form).status_code == 302
    rule = AlertRule.objects.get(name="Charges that died")
    assert (rule.high, rule.low, rule.hold_seconds, rule.remind_seconds) == (5, 1, 60, 0)
    assert (rule.source, rule.kind, rule.owner) == (stripe, letter.kind, "Ines")
    assert rule.emails == [ON_CALL, "lead@acme.example"]
    assert list(rule.channels.all()) == [channel]
    assert _acts() == [("add alert rule", "admin-acme", "too late last week")]

    shown = _text(admin)
    behind = f"/dead-letters/?source=stripe-live&amp;kind={letter.kind}"
    assert f'href="{behind}">1</a>' in shown
    told = re.sub(r"<[^>]+>", "", shown)
    assert "on-call@acme.example, lead@acme.example, hook-stripe-live" in told
    assert admin.get(behind.replace("&amp;", "&")).status_code == 200


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"low": "5"}, "A rule closes below where it opens"),
        ({"high": "0", "low": "0"}, "A rule closes below where it opens"),
        ({"measure": "mood"}, "Unknown measure"),
        ({"name": ""}, "A rule has a name"),
        ({"currency": "EUR"}, "names its currency"),
        ({"measure": "statement"}, "letters and jobs name a kind"),
        ({"hold": "2592001"}, "within thirty days"),
        ({"emails": "nobody"}, "is not a mail address"),
    ],
)
def test_a_rule_that_makes_no_sense_is_shown_again_with_the_reason(
    wrong: dict[str, str], why: str, admin: Client
) -> None:
    answer = admin.post("/alert-rules/add/", RULE | wrong)
    shown = " ".join(answer.content.decode().split())
    assert why in shown
    assert "Nothing was saved." in shown
    assert 'value="too late last week"' in shown
    assert AlertRule.objects.count() == 8
    assert _acts() == []


@pytest.mark.parametrize(
    "wrong",
    [{"high": "many"}, {"low": "-1"}, {"hold": ""}, {"source": "adyen-eu"}, {"channel": "x"}],
)
def test_a_form_that_is_not_ours_is_refused(wrong: dict[str, str], admin: Client) -> None:
    theirs = rows.source(rows.tenant("globex"), "adyen-eu")
    foreign = {"channel": str(rows.channel(theirs).public_id)}
    for form in (RULE | wrong, RULE | foreign):
        assert admin.post("/alert-rules/add/", form).status_code == 400
    assert AlertRule.objects.count() == 8


def test_a_rule_that_looks_elsewhere_ends_its_alerts_and_another_mark_does_not(
    stripe: Source, admin: Client
) -> None:
    rule = rows.alert_rule(stripe, name="Letters", emails=[ON_CALL])
    now = timezone.now()
    alert = Alert.objects.create(
        tenant=stripe.tenant, rule=rule, source=stripe, status="open", since=now,
        opened_at=now, told_at=now, value=40, peak=40,
    )  # fmt: skip
    same = {
        "measure": "open letters", "name": "Letters", "source": "stripe-live", "low": "10",
        "hold": "300", "remind": "14400", "emails": ON_CALL,
    }  # fmt: skip
    address = f"/alert-rules/{rule.public_id}/"
    assert 'value="14400"' in _text(admin, address)
    admin.post(f"{address}change/", same | {"high": "25"})
    assert _acts() == []  # asked for what is so
    admin.post(f"{address}change/", same | {"high": "30"})
    alert.refresh_from_db()
    assert alert.status == "open"
    admin.post(f"{address}change/", same | {"high": "30", "source": ""})
    alert.refresh_from_db()
    assert alert.status == "resolved"
    assert not AlertDelivery.objects.exists()
    changed = AuditEntry.objects.order_by("number").values_list("facts__changed", flat=True)
    assert list(changed) == [["high"], ["source_id"]]


def test_a_rule_is_switched_off_and_on_once_each(stripe: Source, admin: Client) -> None:
    rule = AlertRule.objects.get(measure="open letters")
    now = timezone.now()
    Alert.objects.create(
        tenant=stripe.tenant, rule=rule, source=stripe, status="pending", since=now, value=40,
        peak=40,
    )  # fmt: skip
    address = f"/alert-rules/{rule.public_id}/"
    for _ in range(2):
        admin.post(f"{address}switch/", {"on": "0"})
    assert Alert.objects.get().status == "dropped"
    assert "It is switched off already." in _text(admin, address)
    assert "switched off" in _text(admin)
    admin.post(f"{address}switch/", {"on": "1"})
    rule.refresh_from_db()
    assert rule.enabled
    assert [act for act, *_ in _acts()] == ["switch alert rule off", "switch alert rule on"]


# Channels.


def test_a_webhook_is_added_its_secret_shown_once_and_a_test_goes_there(
    stripe: Source, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_loopback(monkeypatch)
    rule = AlertRule.objects.get(measure="open letters")
    with serving(lambda _: Says(204)) as server:
        form = {"name": "ops", "address": f"{server.url}/?token=t0p", "reason": "pager"}
        admin.post("/alert-channels/add/", form | {"rule": str(rule.public_id)})
        made = AlertChannel.objects.get()
        assert list(made.rules.all()) == [rule]
        first, second = _text(admin), _text(admin)
        secret = made.open().signing
        assert (secret in first, secret in second) == (True, False)
        assert "t0p" not in first
        assert f"{server.url}/…" in second
        admin.post("/alerts/test/", {"email": made.key})
        assert "A test to ops" in _text(admin)
        deliver()
    assert [heard.method for heard in server.heard] == ["POST"]
    assert "</svg>sent</span> test 1" in _text(admin)
    assert _acts() == [("add channel", "admin-acme", "pager"), ("send test", "admin-acme", "")]


@pytest.mark.parametrize("address", ["https://127.0.0.1/", "json://evil.example/", ""])
def test_a_channel_that_may_not_be_is_refused_and_its_address_not_shown_again(
    address: str, admin: Client
) -> None:
    secret = f"{address}?t0p"
    answer = admin.post("/alert-channels/add/", {"name": "ops", "address": secret})
    shown = answer.content.decode()
    assert "This cannot be a channel" in shown
    assert "t0p" not in shown
    assert not AlertChannel.objects.exists()


def test_a_channel_takes_no_rule_of_another_tenant(admin: Client) -> None:
    [rule, *_] = ship_rules(rows.tenant("globex"), [])
    form = {"name": "ops", "address": SLACK, "rule": str(rule.public_id)}
    assert admin.post("/alert-channels/add/", form).status_code == 400
    assert not AlertChannel.objects.exists()


def test_an_admin_removes_a_channel_once(stripe: Source, admin: Client) -> None:
    made = rows.channel(stripe)
    for _ in range(2):
        admin.post(f"/alert-channels/{made.public_id}/remove/", {"reason": "moved"})
    shown = _text(admin)
    assert "It is removed already." in shown
    assert "hook-stripe-live" not in shown
    assert _acts() == [("remove channel", "admin-acme", "moved")]


def test_everybody_else_sees_rules_and_channels_and_no_button(stripe: Source) -> None:
    made = rows.channel(stripe)
    for role in ("viewer", "operator", "approver"):
        client = rows.signed_in(rows.member(stripe.tenant, role))
        shown = _text(client)
        assert "hook-stripe-live" in shown
        for part in ("alert-rules/", "alert-channels/"):
            assert part not in shown
        form = {"name": "ops", "address": SLACK}
        assert client.post("/alert-channels/add/", form).status_code == 403
        remove = f"/alert-channels/{made.public_id}/remove/"
        assert client.post(remove).status_code == 403
    assert AlertChannel.objects.get().removed_at is None


def test_an_open_alert_says_whom_it_told_beside_addresses(
    stripe: Source, admin: Client, time_machine: Any
) -> None:
    rows.channel(stripe)
    AlertRule.objects.update(high=1, low=0)
    rows.letter(stripe)
    evaluate("beat")
    time_machine.shift(timedelta(minutes=5))
    evaluate("beat")
    shown = _text(admin)
    assert "1 address, 1 channel," in shown
    assert "hook-stripe-live (https://hooks.example/…)" in shown
