"""The commands that build a deployment up: tenants, sources with secrets, members with roles."""

import io
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.utils import timezone

from reliability.models import AlertRule, AuditEntry, Membership, Source, SourceSecret, Tenant

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def acme() -> Tenant:
    run("tenant", "add", "acme")
    return Tenant.objects.get(slug="acme")


def test_a_new_tenant_starts_with_the_shipped_rules_and_an_audit_entry() -> None:
    said = run(
        "tenant", "add", "acme", "--name", "Acme Payments", "--email", "ops@acme.example"
    )
    assert "Acme Payments" in said
    tenant = Tenant.objects.get()
    assert (tenant.slug, tenant.name) == ("acme", "Acme Payments")
    assert AlertRule.objects.filter(tenant=tenant).count() == 8
    assert AlertRule.objects.first().emails == ["ops@acme.example"]  # type: ignore[union-attr]
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.about, entry.about_id) == ("add tenant", "tenant", "acme")
    assert entry.actor.endswith("(command)")


def test_a_tenant_that_cannot_be_is_refused_and_leaves_nothing(acme: Tenant) -> None:
    with pytest.raises(CommandError, match="There is a tenant 'acme' already"):
        run("tenant", "add", "acme")
    with pytest.raises(CommandError, match="cannot name a tenant"):
        run("tenant", "add", "no spaces")
    with pytest.raises(CommandError, match="Not all are mail addresses: nobody"):
        run("tenant", "add", "globex", "--email", "nobody")
    assert [one["tenant"] for one in run_json("tenant", "list")] == ["acme"]


def test_a_new_source_prints_its_url_and_its_secret_once(
    acme: Tenant, settings: LazySettings
) -> None:
    settings.RELIABILITY_BASE_URL = "https://hooks.acme.example"
    said = run_json("source", "add", "stripe-live", "--tenant", "acme", "--preset", "stripe")
    source = Source.objects.get()
    assert said["url"] == f"https://hooks.acme.example/hooks/{source.endpoint_token}/"
    assert said["secret"].startswith("whsec_")
    assert SourceSecret.objects.get().open() == said["secret"]
    assert (source.scheme, source.mode, source.zone) == ("stripe", "live", "UTC")
    assert source.statement_format == "stripe-balance-csv"
    assert said["secret"] not in run("source", "list")
    assert said["secret"] not in json.dumps([e.facts for e in AuditEntry.objects.all()])


@pytest.mark.parametrize(
    ("preset", "options", "form"),
    [
        ("stripe", [], r"whsec_[A-Za-z0-9+/]{43}="),
        ("standard-webhooks", [], r"whsec_[A-Za-z0-9+/]{43}="),
        ("github", [], r"[0-9a-f]{64}"),
        ("adyen", [], r"[0-9a-f]{64}"),
        ("gocardless", [], r"[0-9a-f]{64}"),
        ("shopify", [], r"[0-9a-f]{64}"),
        ("generic-hmac", [], r"[0-9a-f]{64}"),
        ("generic-hmac", ["secret_encoding=hex"], r"[0-9a-f]{64}"),
        ("generic-hmac", ["secret_encoding=base64"], r"[A-Za-z0-9+/]{43}="),
    ],
)
def test_a_made_secret_has_the_form_its_scheme_wants(
    acme: Tenant, preset: str, options: list[str], form: str
) -> None:
    given = [f"--option={one}" for one in options]
    said = run_json("source", "add", "here", "--tenant", "acme", "--preset", preset, *given)
    assert re.fullmatch(form, said["secret"])


def test_a_provider_s_own_secret_is_taken_from_the_environment_and_not_shown(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYPAL_WEBHOOK", "WH-8JX12345-TEST")
    paypal = ("source", "add", "paypal-live", "--tenant", "acme", "--preset", "paypal")
    with pytest.raises(CommandError, match="--secret-from-env"):
        run(*paypal)
    with pytest.raises(CommandError, match="ABSENT is not set or empty"):
        run(*paypal, "--secret-from-env", "ABSENT")
    said = run(*paypal, "--secret-from-env", "PAYPAL_WEBHOOK")
    assert "WH-8JX12345-TEST" not in said
    assert SourceSecret.objects.get().open() == "WH-8JX12345-TEST"


def test_what_a_source_may_be_is_named_when_it_is_not_known(acme: Tenant) -> None:
    add = ("source", "add", "here")
    with pytest.raises(CommandError, match=r"Unknown tenant 'globex'. Known: acme\."):
        run(*add, "--tenant", "globex", "--preset", "stripe")
    with pytest.raises(
        CommandError, match=r"Unknown preset 'strip'. Known: stripe, standard-"
    ):
        run(*add, "--tenant", "acme", "--preset", "strip")
    stripe = (*add, "--tenant", "acme", "--preset", "stripe")
    with pytest.raises(CommandError, match="Known: live, test"):
        run(*stripe, "--mode", "sandbox")
    with pytest.raises(CommandError, match="write one like Europe/London"):
        run(*stripe, "--zone", "Mars/Olympus")
    with pytest.raises(CommandError, match="Unknown statement format 'xls'"):
        run(*stripe, "--statement-format", "xls")
    with pytest.raises(CommandError, match="takes name=value"):
        run(*stripe, "--option", "tolerance_seconds")
    with pytest.raises(CommandError, match="tolerance_seconds must lie between 1 and"):
        run(*stripe, "--option", "tolerance_seconds=0")
    with pytest.raises(CommandError, match="cannot name a source"):
        run("source", "add", "a/b", "--tenant", "acme", "--preset", "stripe")
    assert Source.objects.count() == 0


def test_options_reach_the_source_as_what_they_are(acme: Tenant) -> None:
    run(
        "source", "add", "shop", "--tenant", "acme", "--preset", "generic-hmac", "--mode", "test",
        "--account", "acct_1", "--zone", "Europe/Berlin", "--option", "header=X-Shop-Signature",
        "--option", "tolerance_seconds=600", "--statement-format", "mapped-csv",
        "--statement-kind", "charge", "--statement-kind", "refund",
    )  # fmt: skip
    source = Source.objects.get()
    assert (source.mode, source.account, source.zone) == ("test", "acct_1", "Europe/Berlin")
    assert source.options["header"] == "X-Shop-Signature"
    assert source.options["tolerance_seconds"] == 600
    assert source.options["id_pointer"] == "/id"
    assert source.statement_kinds == ["charge", "refund"]
    [row] = run_json("source", "list", "--tenant", "acme")
    assert (row["source"], row["statement"]) == ("shop", "mapped-csv")


def test_a_rotated_secret_leaves_the_old_one_valid_for_a_day(acme: Tenant) -> None:
    run("source", "add", "github", "--tenant", "acme", "--preset", "github")
    before = timezone.now()
    said = run_json("source", "rotate", "github", "--tenant", "acme")
    valid = SourceSecret.objects.valid(before + timedelta(hours=23, minutes=59))
    assert [one.open() == said["secret"] for one in valid] == [True, False]
    later = SourceSecret.objects.valid(timezone.now() + timedelta(hours=24, seconds=1))
    assert [one.open() for one in later] == [said["secret"]]
    with pytest.raises(CommandError, match=r"Unknown source 'gitlab'. Known: github\."):
        run("source", "rotate", "gitlab", "--tenant", "acme")
    assert AuditEntry.objects.filter(act="rotate secret", about_id="github").count() == 1


def test_a_source_is_paused_and_resumed_and_a_member_removed(acme: Tenant) -> None:
    here = ("stripe-live", "--tenant", "acme")
    run("source", "add", *here, "--preset", "stripe")
    assert run_json("source", "pause", *here, "--reason", "their fault")["paused"] is True
    assert run_json("source", "list")[0]["paused"] == "yes"
    assert run_json("source", "resume", *here) == {
        "source": "stripe-live", "tenant": "acme", "paused": False, "jobs_freed": 0,
    }  # fmt: skip
    for name in ("nora", "ada"):
        run("member", "add", name, "--tenant", "acme", "--role", "admin")
    assert run_json("member", "remove", "nora", "--tenant", "acme")["was"] == "admin"
    with pytest.raises(CommandError, match="last admin"):
        run("member", "remove", "ada", "--tenant", "acme")
    acts = AuditEntry.objects.order_by("number").values_list("act", "reason")
    assert ("pause source", "their fault") in acts
    assert Membership.objects.get().user.get_username() == "ada"


def test_a_new_member_gets_an_account_whose_password_is_printed_once(acme: Tenant) -> None:
    said = run_json("member", "add", "nora", "--tenant", "acme", "--role", "operator")
    assert get_user_model().objects.get().check_password(said["password"])
    assert Membership.objects.get().role.name == "reliability operator"
    again = run_json("member", "add", "nora", "--tenant", "acme", "--role", "viewer")
    assert "password" not in again
    assert run_json("member", "list", "--tenant", "acme") == [
        {"member": "nora", "role": "viewer"}
    ]
    said = AuditEntry.objects.filter(about="member", about_id="nora").order_by("number")
    assert [entry.act for entry in said] == ["add member", "change role"]


def test_an_unknown_role_is_answered_with_the_known_ones(acme: Tenant) -> None:
    with pytest.raises(CommandError, match="Known: viewer, operator, approver, admin"):
        run("member", "add", "nora", "--tenant", "acme", "--role", "root")
    assert get_user_model().objects.count() == 0
