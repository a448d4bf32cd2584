"""`manage.py alerts`, and the warnings about alerts nobody would hear of."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.conf import LazySettings
from django.core import mail
from django.core.management import CommandError, call_command
from django.db import connection

from reliability.alerts.checks import (
    every_tenant_can_be_woken,
    links_have_a_host,
    mail_leaves_the_machine,
)
from reliability.alerts.shipped import ship_rules
from reliability.models import AlertRule, Source
from tests.database.elsewhere import Says, allow_loopback, serving
from tests.database.letters import a_source, a_tenant, dead_letters

NIGHT = datetime(2026, 10, 2, 3, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    with time_machine.travel(NIGHT, tick=False) as traveller:
        yield traveller


@pytest.fixture
def source(db: None, clock: time_machine.Traveller) -> Source:
    found = a_source(a_tenant())
    ship_rules(found.tenant, ["on-call@acme.example"])
    return found


def alerts(*arguments: str) -> str:
    out = io.StringIO()
    call_command("alerts", *arguments, stdout=out)
    return out.getvalue()


def test_evaluate_looks_once_and_sends_what_is_owed(
    source: Source, clock: time_machine.Traveller
) -> None:
    dead_letters(source, 25)
    assert alerts("evaluate") == "held 1\n"
    clock.shift(timedelta(minutes=5))
    said = json.loads(alerts("evaluate", "--json"))
    assert (said["opened"], said["mails_sent"], len(mail.outbox)) == (1, 1, 1)
    assert alerts("evaluate") == "Nothing changed.\n"


def test_the_list_shows_rules_and_living_alerts_of_one_tenant(
    source: Source, clock: time_machine.Traveller
) -> None:
    ship_rules(a_tenant("globex"), [])
    dead_letters(source, 40)
    alerts("evaluate")
    listed = json.loads(alerts("--json", "--tenant", "acme"))
    assert len(listed["rules"]) == 8
    assert listed["rules"][0] == {
        "id": str(
            AlertRule.objects.get(tenant=source.tenant, measure="open letters").public_id
        ),
        "tenant": "acme",
        "rule": "Open dead letters",
        "source": "each",
        "opens": "25",
        "closes": "10",
        "hold_seconds": 300,
        "emails": ["on-call@acme.example"],
        "enabled": True,
    }
    [alert] = listed["alerts"]
    assert (alert["source"], alert["status"], alert["value"], alert["since"]) == (
        "stripe-live", "pending", "40", "2026-10-02T03:00:00+00:00",
    )  # fmt: skip
    shown = alerts()
    assert ("rules: 16" in shown, "alerts: 1" in shown) == (True, True)
    assert json.loads(alerts("--json", "--tenant", "globex"))["alerts"] == []


@pytest.mark.usefixtures("db")
def test_a_test_mail_reaches_the_address_it_names() -> None:
    assert alerts("test", "--to", "on-call@acme.example") == "sent_to on-call@acme.example\n"
    assert mail.outbox[0].to == ["on-call@acme.example"]


@pytest.mark.usefixtures("db")
def test_a_test_mail_that_cannot_go_says_why(settings: LazySettings) -> None:
    with pytest.raises(CommandError, match="alerts test --to ADDRESS"):
        alerts("test")
    with pytest.raises(CommandError, match="'nobody' is not a mail address"):
        alerts("test", "--to", "nobody")
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    with pytest.raises(CommandError, match="Check EMAIL_URL"):
        alerts("test", "--to", "on-call@acme.example")


@pytest.mark.parametrize("backend", ["console", "dummy", "filebased", "locmem"])
def test_a_backend_that_stays_on_the_machine_is_warned_of(
    settings: LazySettings, backend: str
) -> None:
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{backend}.EmailBackend"
    assert [found.id for found in mail_leaves_the_machine()] == ["reliability.W020"]
    settings.DEBUG = True
    assert mail_leaves_the_machine() == []


def test_smtp_is_not_warned_of(settings: LazySettings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    assert mail_leaves_the_machine() == []


def test_a_link_without_a_host_is_warned_of(settings: LazySettings) -> None:
    settings.RELIABILITY_BASE_URL = ""
    assert [found.id for found in links_have_a_host()] == ["reliability.W021"]
    settings.RELIABILITY_BASE_URL = "https://reliability.example.com"
    assert links_have_a_host() == []


def test_a_tenant_without_an_address_is_named(source: Source) -> None:
    assert every_tenant_can_be_woken(databases=["default"]) == []
    ship_rules(a_tenant("globex"), [])
    [found] = every_tenant_can_be_woken(databases=["default"])
    assert (found.id, "'globex'" in found.msg) == ("reliability.W020", True)
    assert every_tenant_can_be_woken() == []
    AlertRule.objects.filter(tenant=source.tenant).update(enabled=False)
    assert len(every_tenant_can_be_woken(databases=["default"])) == 2


def test_before_the_first_migration_there_is_nothing_to_warn_of(source: Source) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reliability_tenant RENAME TO elsewhere")
    assert every_tenant_can_be_woken(databases=["default"]) == []


def test_a_channel_is_added_listed_told_by_a_rule_and_removed(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_loopback(monkeypatch)
    with serving(lambda _: Says(204)) as server:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{server.url}/hook?token=t0p\n"))
        ours = ("--tenant", "acme", "--name", "ops")
        added = json.loads(alerts("channel", "add", *ours, "--address", "-", "--json"))
    assert added["secret"].startswith("whsec_")
    listed = alerts("channels", "--tenant", "acme", "--json")
    assert added["secret"] not in listed
    assert "t0p" not in listed
    mailed, hook = json.loads(listed)["channels"]
    assert (mailed["channel"], mailed["to"]) == ("on-call@acme.example", "mail")
    assert (hook["channel"], hook["to"]) == ("ops", f"{server.url}/…")
    assert len(hook["rules"]) == 8

    rule = ("--tenant", "acme", "--measure", "inflow", "--name", "Flood", "--high", "9")
    alerts("add", *rule, "--low", "1", "--channel", "ops", "--remind", "0")
    flood = AlertRule.objects.get(name="Flood")
    assert (flood.remind_seconds, flood.channels.get().name) == (0, "ops")
    with pytest.raises(CommandError, match=r"Unknown channel 'pager'\. Known: ops"):
        alerts("add", *rule, "--low", "1", "--channel", "pager")

    assert '"removed": "ops"' in alerts("channel", "remove", *ours, "--json")
    assert len(json.loads(alerts("channels", "--tenant", "acme", "--json"))["channels"]) == 1
    with pytest.raises(CommandError, match=r"Unknown channel 'ops'\. Known: none yet"):
        alerts("channel", "remove", *ours)
    with pytest.raises(CommandError, match="alerts channel add or alerts channel remove"):
        alerts("channel", *ours)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--low", "9"), "closes below where it opens"),
        (("--low", "-1"), "closes below where it opens"),
        (("--measure", "mood"), "Unknown measure 'mood'"),
        (("--currency", "EUR"), "A rule on money, and no other"),
        (("--measure", "money at risk", "--currency", "EURO"), "three letters"),
        (("--measure", "statement", "--kind", "x"), "letters and jobs name a kind"),
        (("--measure", "oldest ready job", "--cause", "f1"), "letters name a cause"),
        (("--hold", "-1"), "within thirty days"),
        (("--remind", "9999999"), "within thirty days"),
        (("--high", "9999999999999999"), "never reached"),
        (("--email", "nobody"), "'nobody' is not a mail address"),
        (("--name", " "), "name of at most 120"),
        (("--owner", "x" * 121), "named in at most 120"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_in_one_line(
    more: tuple[str, ...], why: str, source: Source
) -> None:
    rule = ("add", "--tenant", "acme", "--measure", "inflow", "--name", "Flood", "--high", "9")
    with pytest.raises(CommandError, match=why):
        alerts(*rule, *more)
    assert AlertRule.objects.count() == 8


def test_a_rule_of_ones_own_is_no_shipped_one_twice(source: Source) -> None:
    rule = ("--measure", "open letters", "--name", "Many", "--high", "900", "--low", "100")
    alerts("add", "--tenant", "acme", *rule)
    ship_rules(source.tenant, [])
    assert AlertRule.objects.filter(measure="open letters").count() == 2
