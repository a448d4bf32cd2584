"""Own jobs by the thousand, fan-out from a handler, and the original where an insert is refused."""

import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group

from reliability.claim import enqueue as own_jobs
from reliability.claim.enqueue import Accepted, Duplicate, enqueue, enqueue_many
from reliability.conf import conf
from reliability.errors import KeyConflict, KeyNotAccepted
from reliability.handlers import (
    REMEDIES,
    Event,
    MappedOperation,
    ProviderHeader,
    UniqueConstraint,
)
from reliability.models import Body, Job, ProcessedKey, Source
from reliability.policy import Backoff
from reliability.work.drain import drain
from tests.database import world

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
TWICE = Backoff(first=HOUR, cap=HOUR, attempts=2)


def effect(event: Event) -> None:
    Group.objects.create(name=event.key)


def test_two_thousand_jobs_are_taken_in_at_once_each_key_once() -> None:
    world.tenant()
    with world.local("mail", effect):
        items = [(f"k-{n % 1_990}", {"n": n}) for n in range(2_000)]
        taken = enqueue_many("mail", items, tenant="acme")
        again = enqueue_many("mail", [("k-5", None), ("new", None)], tenant="acme")
    assert len(taken) == 2_000
    assert all(isinstance(answer, Accepted) for answer in taken)
    assert taken[5] == taken[1_995]
    assert Job.objects.count() == 1_991
    assert isinstance(again[0], Duplicate)
    assert isinstance(again[1], Accepted)


def test_a_handler_fans_out_in_its_own_transaction() -> None:
    def order(event: Event) -> None:
        enqueue_many(
            "mail", [(event.child("customer"), None), (event.child("shop"), None)],
            tenant=event.tenant,
        )  # fmt: skip
        if event.failures == 0:
            raise ValueError("the first attempt fails after it enqueued")

    with world.local("mail", effect), world.local("order", order, policy=TWICE):
        job = world.job("order", "evt_1")
        drain("local")
        assert Job.objects.filter(kind="mail").count() == 0
        world.make_due(job)
        drain("local")
    assert set(ProcessedKey.objects.filter(kind="mail").values_list("key", flat=True)) == {
        '["evt_1","customer"]',
        '["evt_1","shop"]',
    }
    assert Group.objects.filter(name__startswith='["evt_1"').count() == 2


def test_a_conflict_among_many_takes_none_in_and_names_the_key() -> None:
    def charge(payload: dict[str, int]) -> MappedOperation:
        return MappedOperation(
            operation_class="charge", reference="ch_1", amount_minor=payload["amount"]
        )

    with world.local("charge", effect, operation=charge):
        world.job("charge", "a", {"amount": 1})
        with pytest.raises(KeyConflict) as refused:
            enqueue_many(
                "charge", [("b", {"amount": 1}), ("a", {"amount": 2})], tenant=world.tenant()
            )
    assert str(refused.value) == (
        "'a' was enqueued as 'charge' before, with another operation or amount. "
        "The first stands; use another key for another job."
    )


def test_too_many_at_a_time_are_refused_and_none_at_all_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_jobs, "conf", lambda: replace(conf(), enqueue_max=2))
    with world.local("mail", effect):
        assert len(enqueue_many("mail", [("a", 1), ("b", 2)], tenant=world.tenant())) == 2
        with pytest.raises(KeyNotAccepted) as refused:
            enqueue_many("mail", [("a", 1), ("b", 2), ("c", 3)], tenant=world.tenant())
        assert enqueue_many("mail", [], tenant=world.tenant()) == []
    assert str(refused.value) == "At most 2 jobs at a time, not 3."


@pytest.mark.parametrize(
    ("kind", "key", "payload", "why"),
    [
        (
            "nobody's",
            "k",
            None,
            '"nobody\'s" has no handler here; declare it with @handler("nobody\'s", …).',
        ),
        ("sinkless", "k", None, f"'sinkless' has retries and no sink: {REMEDIES}."),
        ("forgetful", "k", None, "'forgetful' may take "),
        ("mail", "", None, "The key of this 'mail' job is empty."),
        (
            "mail",
            "k",
            float("nan"),
            "The payload of this 'mail' job is not JSON: Out of range",
        ),
        (
            "mail",
            "k",
            {1, 2},
            "The payload of this 'mail' job is not JSON: Object of type set",
        ),
    ],
)
def test_what_cannot_keep_the_promise_is_refused_with_the_reason_and_leaves_no_row(
    kind: str, key: str, payload: object, why: str
) -> None:
    forgets = ProviderHeader("Idempotency-Key", window=timedelta(minutes=1))
    with (
        world.local("mail", effect),
        world.kind("sinkless", effect, policy=TWICE),
        world.kind("forgetful", effect, sink=forgets, policy=TWICE),
        pytest.raises(KeyNotAccepted) as refused,
    ):
        enqueue(kind, key=key, tenant=world.tenant(), payload=payload)
    assert str(refused.value).startswith(why)
    assert not ProcessedKey.objects.exists()


def test_an_unknown_tenant_is_refused() -> None:
    with world.local("mail", effect), pytest.raises(KeyNotAccepted) as refused:
        enqueue("mail", key="k", tenant="nobody")
    assert str(refused.value) == (
        "There is no tenant 'nobody'; add it with: manage.py tenant."
    )


def test_an_own_job_is_written_down_as_it_was_asked_for() -> None:
    with world.local("mail", effect):
        enqueue("mail", key="k", tenant=world.tenant().slug, asked_by="ops",
                payload={"to": "Zoë"})  # fmt: skip
        assert drain("local") == 1
        again = enqueue("mail", key="k", tenant=world.tenant(), payload={"to": "Zoë"})
    key, job = ProcessedKey.objects.get(), Job.objects.get()
    assert (key.key, key.kind, key.downstream_key, key.asked_by) == ("k", "mail", "k", "ops")
    assert (job.kind, job.queue) == ("mail", "local")
    # Read by people in the console and by other languages' tools: text stays text.
    assert bytes(Body.objects.get().raw) == '{"to": "Zoë"}'.encode()
    assert isinstance(again, Duplicate)
    assert (again.job_id, again.state) == (job.public_id, "done")
    assert again.done_at == job.ended_at
    assert again.done_at is not None


def test_own_jobs_of_one_kind_have_an_internal_source_of_their_own() -> None:
    with world.local("mail", effect), world.local("post", effect):
        for kind in ("mail", "post", "mail"):
            enqueue(kind, key="k", tenant=world.tenant().slug)
    assert sorted(Source.objects.values_list("tenant__slug", "slug", "internal")) == [
        ("acme", "own:mail", True),
        ("acme", "own:post", True),
    ]
    assert Job.objects.count() == 2
    assert set(ProcessedKey.objects.values_list("asked_by", flat=True)) == {""}


def test_kinds_with_long_names_do_not_share_their_keys() -> None:
    short, long, longer = "k" * 99, "k" * 100, "k" * 101
    for kind in (short, long, longer):
        with world.local(kind, effect):
            assert isinstance(enqueue(kind, key="k", tenant=world.tenant()), Accepted)
    assert set(Source.objects.values_list("slug", flat=True)) == {
        f"own:{short}",
        *(
            f"own:{'k' * 80}:{hashlib.sha256(kind.encode()).hexdigest()[:12]}"
            for kind in (long, longer)
        ),
    }


def test_an_insert_that_is_refused_returns_the_row_that_stands_and_keeps_nothing_else() -> (
    None
):
    def insert(event: Event) -> None:
        Group.objects.create(name=f"half of {event.key}")
        Group.objects.create(name="ch_1")

    sink = UniqueConstraint("auth.Group", "name")
    with world.kind("insert", insert, sink=sink, policy=TWICE):
        first, second = world.job("insert", "a"), world.job("insert", "b")
        drain("local")
        first.refresh_from_db()
        second.refresh_from_db()
    standing = Group.objects.get(name="ch_1")
    assert (first.state, first.result) == ("done", None)
    assert (second.state, second.result) == ("done", {"already_applied": str(standing.pk)})
    assert not Group.objects.filter(name="half of b").exists()
    assert enqueue_answer("insert", "b") == {"already_applied": str(standing.pk)}


def enqueue_answer(kind: str, key: str) -> object:
    with world.kind(kind, effect, sink=UniqueConstraint("auth.Group", "name")):
        answer = enqueue(kind, key=key, tenant=world.tenant())
    assert isinstance(answer, Duplicate)
    return answer.result


def test_another_constraint_that_is_violated_is_a_failure() -> None:
    def insert(event: Event) -> None:
        Group.objects.create(pk=Group.objects.create(name="taken").pk, name="other")

    sink = UniqueConstraint("auth.Group", "name")
    with world.kind("insert", insert, sink=sink, policy=TWICE):
        job = world.job("insert", "a")
        drain("local")
        job.refresh_from_db()
    assert job.state == "ready"
    assert job.attempts.get().error_type == "IntegrityError"
