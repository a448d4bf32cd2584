"""Channels besides mail: signed webhooks to a real server, chats and pagers of four makers only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
import time_machine
from django.conf import LazySettings
from django.core import mail
from django.db import connection
from standardwebhooks import Webhook

from reliability.alerts import chat
from reliability.alerts.channel_acts import (
    AddedChannel,
    WantedChannel,
    add_channel,
    remove_channel,
)
from reliability.alerts.channels import ask_test
from reliability.alerts.checks import every_tenant_can_be_woken, mail_leaves_the_machine
from reliability.alerts.deliver import Delivered, deliver
from reliability.alerts.evaluate import evaluate
from reliability.alerts.shipped import ship_rules
from reliability.alerts.silences import Window, silence
from reliability.conf import conf
from reliability.errors import AddressRefused
from reliability.models import (
    AlertChannel,
    AlertDelivery,
    AlertRule,
    AuditEntry,
    Source,
    Tenant,
)
from reliability.models.acting import Refused
from reliability.work.dead_letters import Act
from tests.database.elsewhere import Elsewhere, Heard, Says, allow_loopback, serving
from tests.database.letters import a_source, a_tenant, close_letters, dead_letters

NIGHT = datetime(2026, 10, 2, 3, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SLACK = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7/#on-call"
PAGER = "pagerduty://b0d1c2e3f4a5b6c7d8e9f0a1b2c3d4e5@u9kN2yTestKey/acme?region=eu"
TEAMS = "workflows://prod-161.westeurope.logic.azure.com:443/4f2e9d/aSignature"
GENIE = "opsgenie://a-key-of-opsgenie/?region=eu"
HOSTILE = "live\r\n<!channel> <https://evil.example|sign in> & more"


@pytest.fixture
def clock(settings: LazySettings) -> Iterator[time_machine.Traveller]:
    settings.RELIABILITY_BASE_URL = "https://reliability.acme.example"
    with time_machine.travel(NIGHT, tick=False) as traveller:
        yield traveller


@pytest.fixture
def source(db: None, clock: time_machine.Traveller) -> Source:
    """Return a source whose tenant has the rule on open letters alone, and mails nobody."""
    found = a_source(a_tenant(), zone="Europe/Amsterdam")
    ship_rules(found.tenant, [])
    AlertRule.objects.exclude(measure="open letters").delete()
    return found


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Elsewhere]:
    allow_loopback(monkeypatch)
    with serving(lambda _: Says(204)) as found:
        yield found


def added(source: Source, address: str, name: str = "ops") -> AddedChannel:
    made = add_channel(WantedChannel(name, address), Act(source.tenant, "ada"))
    assert isinstance(made, AddedChannel)
    return made


def refused(source: Source, address: str) -> str:
    found = add_channel(WantedChannel("ops", address), Act(source.tenant, "ada"))
    assert isinstance(found, Refused)
    assert not AlertChannel.objects.exists()
    assert not AuditEntry.objects.exists()
    return found.why


def open_an_alert(source: Source, clock: time_machine.Traveller) -> None:
    dead_letters(source, 40)
    evaluate("beat")
    clock.shift(5 * MINUTE)
    evaluate("beat")


def verified(heard: Heard, secret: str) -> Any:
    """Return what a receiver reads that checks the signature with the specification's own code."""
    return Webhook(secret).verify(heard.body, dict(heard.headers))


# Webhooks.


def test_a_webhook_hears_once_that_an_alert_opens_and_resolves_signed_and_of_nobodys_data(
    source: Source, server: Elsewhere, clock: time_machine.Traveller
) -> None:
    AlertRule.objects.update(owner="N. Okafor, on call")
    secret = added(source, f"{server.url}/hook?token=t0p").secret
    open_an_alert(source, clock)
    for _ in range(3):
        deliver()
        evaluate("beat")
    close_letters(source, 30)
    evaluate("beat")
    deliver()

    opened, resolved = server.heard
    assert (opened.method, opened.path) == ("POST", "/hook?token=t0p")
    said = verified(opened, secret)
    alert, rule = said["data"].pop("alert"), said["data"].pop("rule")
    assert rule["name"] == "Open dead letters"
    assert said == {
        "type": "alert.opened",
        "timestamp": "2026-10-02T03:05:00+00:00",
        "data": {
            "scope": {
                "tenant": "acme", "source": "stripe-live", "kind": None, "cause": None,
                "currency": None,
            },
            "measure": "open letters", "value": 40, "peak": 40, "opens_at": 25,
            "closes_at": 10, "since": "2026-10-02T03:00:00+00:00",
            "opened_at": "2026-10-02T03:05:00+00:00", "reminder": None,
            "said": "40 dead letters open in stripe-live",
            "link": "https://reliability.acme.example/in/acme/dead-letters/?source=stripe-live",
        },
    }  # fmt: skip
    ended = verified(resolved, secret)
    assert (ended["type"], ended["data"]["value"]) == ("alert.resolved", 10)
    assert ended["data"]["alert"] == alert
    for customers in ("4242424242424242", "jane.doe", "1999", "evt_", "Okafor"):
        assert customers not in (opened.body + resolved.body).decode()
    assert mail.outbox == []


@pytest.mark.parametrize("status", [302, 400, 500])
def test_a_server_that_does_not_take_it_is_asked_again_under_the_same_id(
    status: int,
    source: Source,
    clock: time_machine.Traveller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allow_loopback(monkeypatch)
    answers = [Says(status, headers={"Location": "/elsewhere"}), Says(200)]
    with serving(lambda _: answers.pop(0)) as server:
        secret = added(source, server.url).secret
        open_an_alert(source, clock)
        assert deliver() == Delivered(put_off=1)
        assert f"it answered {status}" in AlertDelivery.objects.get().error
        assert deliver() == Delivered()
        clock.shift(MINUTE)
        assert deliver() == Delivered(sent=1)
    first, second = server.heard
    assert "/elsewhere" not in {first.path, second.path}
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert verified(second, secret) == json.loads(first.body)


@pytest.mark.parametrize(
    "address",
    [
        "https://127.0.0.1/", "http://169.254.169.254/latest/meta-data", "https://10.0.0.8/x",
        "https://[::1]/", "https://user:word@hooks.example/", "https://localhost/",
    ],
)  # fmt: skip
def test_a_webhook_inside_our_network_is_refused_before_it_is_saved(
    address: str, source: Source
) -> None:
    assert refused(source, address).startswith("This cannot be a channel: ")


def test_a_webhook_that_moved_into_our_network_is_refused_at_each_sending(
    source: Source, server: Elsewhere, clock: time_machine.Traveller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    added(source, server.url)
    monkeypatch.undo()  # loopback is a stranger's again
    open_an_alert(source, clock)
    assert deliver() == Delivered(put_off=1)
    assert "not public" in AlertDelivery.objects.get().error
    assert server.heard == []


def test_nothing_at_rest_and_nothing_on_record_gives_an_address_or_a_secret_away(
    source: Source, server: Elsewhere
) -> None:
    hook = added(source, f"{server.url}/hook?token=t0p")
    chatting = added(source, SLACK, "chat").channel
    port = server.url.rpartition(":")[2]
    assert hook.channel.shown == f"http://127.0.0.1:{port}/…"
    assert chatting.shown == "slack://…"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c::text FROM reliability_alertchannel c UNION ALL "
            "SELECT a::text FROM reliability_auditentry a"
        )
        kept = "\n".join(row[0] for row in cursor.fetchall())
    for text in ("t0p", hook.secret, "TIiajkdnlazkcOXrIdevi7"):
        assert text not in kept
        assert text.encode().hex() not in kept
    stolen = AlertChannel.objects.get(pk=chatting.pk)
    stolen.sealed_address = hook.channel.sealed_address
    with pytest.raises(Exception, match="does not belong to this row"):
        stolen.open()


def test_a_channel_gets_no_more_within_an_hour_than_an_address(
    source: Source, server: Elsewhere, clock: time_machine.Traveller
) -> None:
    made = added(source, server.url).channel
    for number in range(conf().mails_per_hour_max + 1):
        dead_letters(a_source(source.tenant, f"source-{number}"), 25)
    evaluate("beat")
    clock.shift(5 * MINUTE)
    evaluate("beat")
    assert deliver() == Delivered(sent=30)
    assert len(server.heard) == 30
    told = ask_test(made.key, Act(source.tenant, "ada"))
    assert isinstance(told, Refused)
    clock.shift(timedelta(hours=1))
    assert deliver() == Delivered(sent=1)


def test_a_silence_holds_a_channel_back_as_it_does_a_mail(
    source: Source, server: Elsewhere, clock: time_machine.Traveller
) -> None:
    added(source, server.url)
    act = Act(source.tenant, "ada", reason="moving")
    silence(Window(from_at=NIGHT, until_at=NIGHT + timedelta(hours=1)), act)
    open_an_alert(source, clock)
    assert deliver() == Delivered()
    clock.shift(timedelta(hours=1))
    evaluate("beat")
    assert deliver() == Delivered(sent=1)


def test_a_removed_channel_hears_nothing_more_and_its_secrets_are_gone(
    source: Source, server: Elsewhere, clock: time_machine.Traveller
) -> None:
    made = added(source, server.url).channel
    open_an_alert(source, clock)
    remove_channel(made, Act(source.tenant, "ada"))
    assert deliver() == Delivered(given_up=1)
    assert "was removed" in AlertDelivery.objects.get().error
    close_letters(source, 40)
    evaluate("beat")
    assert deliver() == Delivered()
    assert server.heard == []
    made.refresh_from_db()
    assert (bytes(made.sealed_address), bytes(made.sealed_signing)) == (b"", b"")
    assert isinstance(remove_channel(made, Act(source.tenant, "ada")), Refused)
    acts = AuditEntry.objects.order_by("number").values_list("act", flat=True)
    assert list(acts) == ["add channel", "remove channel"]


def test_a_channel_takes_no_rule_and_no_test_of_another_tenant(
    source: Source, server: Elsewhere
) -> None:
    theirs = a_tenant("globex")
    [rule, *_] = ship_rules(theirs, [])
    wanted = WantedChannel("ops", server.url, [rule])
    assert isinstance(add_channel(wanted, Act(source.tenant, "ada")), Refused)
    ours = added(source, server.url).channel
    assert isinstance(ask_test(ours.key, Act(theirs, "eve")), Refused)
    assert isinstance(remove_channel(ours, Act(theirs, "eve")), Refused)


def test_a_name_stands_for_one_channel(source: Source, server: Elsewhere) -> None:
    added(source, server.url)
    wanted = WantedChannel("ops", server.url)
    assert add_channel(wanted, Act(source.tenant, "ada")) == Refused(
        "There is a channel 'ops' already."
    )


def test_the_warnings_count_channels(
    source: Source, server: Elsewhere, settings: LazySettings
) -> None:
    settings.DEBUG = False
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    asked = {"databases": ["default"]}
    assert (
        len(mail_leaves_the_machine(**asked)) == len(every_tenant_can_be_woken(**asked)) == 1
    )
    made = added(source, server.url).channel
    assert mail_leaves_the_machine(**asked) == every_tenant_can_be_woken(**asked) == []
    remove_channel(made, Act(source.tenant, "ada"))
    assert (
        len(mail_leaves_the_machine(**asked)) == len(every_tenant_can_be_woken(**asked)) == 1
    )


# Chats and pagers.


@pytest.mark.parametrize("address", [SLACK, PAGER, TEAMS, GENIE])
def test_four_services_are_known(address: str) -> None:
    assert chat.judge(address) == address.partition(":")[0]


@pytest.mark.parametrize(
    "address",
    [
        "json://127.0.0.1/", "xml://evil.example/", "mailto://user:word@evil.example",
        "ntfy://evil.example/topic", "syslog://", "exec://x", "msteams://a/b/c/d",
        "hooks.slack.com/services/a/b/c", "file:///etc/passwd", "",
        "workflows://127.0.0.1:8000/4f2e9d/aSignature",
        "workflows://evil.example/4f2e9d/aSignature",
        "workflows://logic.azure.com.evil.example/4f2e9d/aSignature",
        "workflows://evillogic.azure.com/4f2e9d/aSignature",
        "workflows://prod.logic.azure.com:8443/4f2e9d/aSignature",
        "workflows://prod.logic.azure.com@evil.example/4f2e9d/aSignature",
        f"{TEAMS}?template=/etc/passwd", f"{TEAMS}?verify=no", f"{SLACK}?redirect=yes",
        f"{SLACK.replace('#', '')}?verify=no", f"{PAGER}&click=https://evil.example",
        "slack://only-one-token", "pagerduty://no-integration-key/", "slack://a/b\\c/d",
    ],
)  # fmt: skip
def test_every_other_address_is_refused_before_it_is_saved(
    address: str, source: Source
) -> None:
    assert refused(source, address).startswith("This cannot be a channel: ")


def test_a_deployment_without_apprise_is_told_which_extra_it_lacks(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(chat, "import_module", missing)
    assert refused(source, SLACK) == (
        "This cannot be a channel: chats and pagers need Apprise: "
        "pip install 'reliability[chat]'."
    )


class Makers:
    """Stands for the servers of Slack and the others, where Apprise hands requests over."""

    def __init__(self) -> None:
        self.asked = list[tuple[str, str]]()
        self.kept = list[dict[str, Any]]()
        self.status = 200

    def request(self, method: str, url: str, **more: Any) -> requests.Response:
        self.asked.append((method.upper(), url))
        self.kept.append(more)
        answer = requests.Response()
        answer.status_code = self.status
        answer._content = b"ok" if "slack" in url else b'{"requestId": "r1"}'
        return answer

    def bodies(self) -> list[Any]:
        return [json.loads(more["data"]) for more in self.kept]


@pytest.fixture
def makers(monkeypatch: pytest.MonkeyPatch) -> Makers:
    found = Makers()
    monkeypatch.setattr(requests.Session, "request", found.request)
    return found


def test_an_incident_opens_once_and_is_resolved_by_the_name_of_its_alert(
    source: Source, makers: Makers, clock: time_machine.Traveller
) -> None:
    added(source, PAGER)
    open_an_alert(source, clock)
    deliver()
    clock.shift(timedelta(hours=4))
    evaluate("beat")
    deliver()
    close_letters(source, 40)
    evaluate("beat")
    deliver()
    opened, reminded, resolved = makers.bodies()
    assert makers.asked == [("POST", "https://events.eu.pagerduty.com/v2/enqueue")] * 3
    assert [b["event_action"] for b in (opened, reminded, resolved)] == [
        "trigger", "trigger", "resolve",
    ]  # fmt: skip
    alert = str(AlertDelivery.objects.select_related("alert")[0].alert.public_id)  # type: ignore[union-attr]  # of an alert
    assert {b["dedup_key"] for b in (opened, reminded, resolved)} == {alert}
    assert "40 dead letters open in stripe-live" in opened["payload"]["summary"]
    assert [more["allow_redirects"] for more in makers.kept] == [False] * 3
    assert [more["verify"] for more in makers.kept] == [True] * 3


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (SLACK, "https://hooks.slack.com/"),
        (TEAMS, "https://prod-161.westeurope.logic.azure.com:443/"),
        (GENIE, "https://api.eu.opsgenie.com/"),
    ],
)
def test_each_service_is_asked_at_its_makers_host_and_names_call_nobody(
    address: str, host: str, source: Source, makers: Makers, clock: time_machine.Traveller
) -> None:
    Source.objects.update(slug=HOSTILE)
    AlertRule.objects.update(name=HOSTILE)
    added(source, address)
    open_an_alert(source, clock)
    assert deliver() == Delivered(sent=1)
    [(method, url)], [body] = makers.asked, makers.bodies()
    assert (method, url.startswith(host)) == ("POST", True)
    said = json.dumps(body, ensure_ascii=False)
    for forged in ("<!channel", "https://evil", "\\r", "pprise"):
        assert forged not in said
    assert "https://reliability.acme.example/in/acme/dead-letters/" in said


def test_a_service_that_does_not_take_it_is_asked_again(
    source: Source, makers: Makers, clock: time_machine.Traveller
) -> None:
    added(source, SLACK)
    makers.status = 500
    open_an_alert(source, clock)
    assert deliver() == Delivered(put_off=1)
    assert AlertDelivery.objects.get().error == "NoAnswer: slack did not take it"
    makers.status = 200
    clock.shift(MINUTE)
    assert deliver() == Delivered(sent=1)


def test_a_test_goes_to_a_chat_the_way_of_the_alerts(source: Source, makers: Makers) -> None:
    made = added(source, SLACK).channel
    owed = ask_test(made.key, Act(source.tenant, "ada"))
    assert isinstance(owed, AlertDelivery)
    assert deliver() == Delivered(sent=1)
    assert "Alerts reach this channel." in json.dumps(makers.bodies())


def test_an_address_that_was_saved_is_judged_again_when_it_is_used() -> None:
    owed = AlertDelivery(tenant=Tenant(), occasion="test 1", email="channel x")
    with pytest.raises(AddressRefused):
        chat.notify(owed, "workflows://127.0.0.1/4f2e9d/aSignature")
