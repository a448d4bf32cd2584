"""Dead letters, traces, the sweep and the audit trail from the command line."""

import io
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from reliability.handlers import Event, MappedOperation
from reliability.models import AuditEntry, DeadLetter, Job, Run
from reliability.policy import RunOnce
from reliability.work.lease import take
from tests.database import world

pytestmark = pytest.mark.django_db


def refuse(event: Event) -> None:
    raise ValueError("the downstream said no")


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with (
        world.kind("once", refuse, policy=RunOnce()),
        world.local("local", lambda _: None),
    ):
        yield


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def letters(act: str, *arguments: str) -> Any:
    return run_json("deadletters", act, "--tenant", "acme", *arguments)


def listed(*arguments: str) -> list[str]:
    return [row["key"] for row in letters("list", *arguments)["letters"]]


def bury(*keys: str) -> list[DeadLetter]:
    jobs = [world.job("once", key) for key in keys]
    world.work_outside()
    return [DeadLetter.objects.get(job=job) for job in jobs]


def test_the_list_shows_the_newest_first_and_says_when_there_is_more() -> None:
    bury("a-1", "a-2", "a-3")
    world.tenant("globex")
    assert sorted(listed()) == ["a-1", "a-2", "a-3"]
    found = letters("list", "--limit", "2")
    assert (len(found["letters"]), found["more"]) == (2, True)
    said = run("deadletters", "list", "--tenant", "acme", "--limit", "2")
    assert "ValueError: the downstream said no" in said
    assert "More than 2" in said
    assert run("deadletters", "list", "--tenant", "globex").startswith(
        "Dead letters of globex: none"
    )


def test_each_filter_narrows_the_list() -> None:
    old, *_ = bury("order-1", "order-2", "other-3")
    DeadLetter.objects.filter(pk=old.pk).update(
        buried_at=timezone.now() - timedelta(hours=2), outcome="unknown", round=3
    )
    assert listed("--age", "1h") == ["order-1"]
    assert listed("--age", "24h") == []
    assert listed("--outcome", "unknown") == ["order-1"]
    assert listed("--rounds", "2") == ["order-1"]
    assert sorted(listed("--key", "order-")) == ["order-1", "order-2"]
    assert listed("--kind", "twice") == []
    assert len(listed("--kind", "once")) == 3
    assert len(listed("--error", "ValueError")) == 3
    assert listed("--error", "KeyError") == []
    assert listed("--cause", "no such cause") == []
    assert len(listed("--cause", old.fingerprint)) == 3
    world.source()
    assert listed("--source", "stripe-live") == []
    with pytest.raises(CommandError, match="Unknown source"):
        listed("--source", "nowhere")


def test_a_letter_is_shown_with_its_attempts() -> None:
    [one] = bury("a-1")
    found = letters("show", f"DL-{one.pk}")
    assert (found["key"], found["outcome"], found["job_state"]) == ("a-1", "failed", "dead")
    assert [a["error"] for a in found["attempts"]] == ["ValueError: the downstream said no"]
    assert letters("show", str(one.public_id))["letter"] == f"DL-{one.pk}"
    assert "Attempts" in run("deadletters", "show", str(one.pk), "--tenant", "acme")


def test_a_letter_is_requeued_once() -> None:
    [one] = bury("a-1")
    assert letters("requeue", f"DL-{one.pk}", "--reason", "fixed")["moved"] == [f"DL-{one.pk}"]
    job = Job.objects.get(pk=one.job_id)
    assert (job.state, job.round) == ("ready", 2)
    assert AuditEntry.objects.get(act="requeue").actor.endswith("(command)")
    with pytest.raises(CommandError, match=r"1 refused: DL-.* was first: requeued"):
        letters("requeue", f"DL-{one.pk}")
    assert Job.objects.get(pk=one.job_id).round == 2


def test_letters_are_discarded_by_filter_with_a_reason_and_restored() -> None:
    bury("order-1", "order-2", "other-3")
    with pytest.raises(CommandError, match="Say why"):
        letters("discard", "--key", "order-")
    moved = letters("discard", "--key", "order-", "--reason", "test orders")["moved"]
    assert len(moved) == 2
    assert listed() == ["other-3"]
    assert sorted(listed("--status", "discarded")) == ["order-1", "order-2"]
    assert len(listed("--status", "all")) == 3
    assert letters("restore", moved[0])["moved"] == [moved[0]]
    assert len(listed()) == 2


def test_a_letter_is_resolved_with_a_reason() -> None:
    [one] = bury("a-1")
    letters("resolve", f"DL-{one.pk}", "--reason", "done by hand")
    assert Job.objects.get(pk=one.job_id).state == "resolved"


def test_nothing_is_moved_for_want_of_a_word() -> None:
    [one] = bury("a-1")
    with pytest.raises(CommandError, match="give a filter"):
        letters("requeue")
    with pytest.raises(CommandError, match="not both"):
        letters("requeue", f"DL-{one.pk}", "--kind", "once")
    with pytest.raises(CommandError, match="No letter matches"):
        letters("requeue", "--kind", "twice")
    with pytest.raises(CommandError, match="is called DL-7 or by its id"):
        letters("requeue", "a-1")
    world.tenant("globex")
    with pytest.raises(CommandError, match="has no dead letter"):
        run("deadletters", "requeue", f"DL-{one.pk}", "--tenant", "globex")
    assert Job.objects.get(pk=one.job_id).state == "dead"


def test_a_trace_tells_the_story_across_the_layers() -> None:
    [one] = bury("evt_1")
    letters("requeue", f"DL-{one.pk}", "--reason", "fixed")
    found = run_json("trace", "evt_1")
    [claim] = found["claims"]
    assert (claim["key"], claim["state"], claim["starts"]) == ("evt_1", "ready", 1)
    assert [(m["by"], m["what"].split(" by ")[0]) for m in claim["story"]] == [
        ("claim", "accepted"),
        ("work", "start 1 failed"),
        ("work", f"buried as DL-{one.pk}, failed"),
        ("operator", "requeue"),
    ]
    said = run("trace", str(one.public_id))
    assert "evt_1" in said
    assert "ValueError: the downstream said no" in said


def test_a_trace_of_an_absorbed_event_tells_of_the_claim_that_has_its_operation() -> None:
    source = world.source()
    charge = MappedOperation(operation_class="charge", reference="ch_1")
    world.take_in(source, world.asked("evt_1", operation=charge))
    world.take_in(source, world.asked("evt_2", operation=charge))
    for text in ("evt_1", "evt_2", "ch_1"):
        [claim] = run_json("trace", text)["claims"]
        assert (claim["key"], claim["operation"]) == ("evt_1", "charge ch_1")
        assert [m["what"] for m in claim["story"]] == ["accepted", "absorbed as evt_2"]


def test_a_trace_keeps_to_its_tenant_and_fails_when_nothing_is_known() -> None:
    bury("evt_1")
    world.tenant("globex")
    with pytest.raises(CommandError, match="Nothing is known of 'evt_1'"):
        run("trace", "evt_1", "--tenant", "globex")
    with pytest.raises(CommandError, match="Nothing is known of 'evt_1 '"):
        run("trace", "evt_1 ")


def test_a_sweep_by_command_rescues_and_is_recorded_as_one() -> None:
    job = world.job("local")
    take("local", limit=1)
    world.end_lease(job)
    assert run_json("sweep")["rescued"] == 1
    assert Job.objects.get(pk=job.pk).state == "ready"
    assert Run.objects.get(job="sweep").trigger == "command"
    assert "rescued" in run("sweep")


def test_a_changed_audit_entry_is_named_and_fails_the_check() -> None:
    tenant = world.tenant()
    for n in range(3):
        AuditEntry.objects.record(
            tenant, actor="ola", act="look", about="job", about_id=str(n)
        )
    assert run_json("audit", "verify") == {"entries": 3, "broken": [], "ok": True}
    assert "each chain holds" in run("audit", "verify", "--tenant", "acme")
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE reliability_auditentry DISABLE TRIGGER USER")
        cursor.execute("UPDATE reliability_auditentry SET actor = 'eve' WHERE number = 2")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 audit entries do not follow"):
        call_command("audit", "verify", "--json", stdout=out)
    [broken] = json.loads(out.getvalue())["broken"]
    assert (broken["number"], broken["says"]) == (2, "eve look job 1")
