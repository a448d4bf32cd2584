"""Own jobs by the thousand, fan-out from a handler, and the original where an insert is refused."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group

from reliability.claim.enqueue import Accepted, Duplicate, enqueue, enqueue_many
from reliability.conf import conf
from reliability.errors import KeyConflict, KeyNotAccepted
from reliability.handlers import Event, MappedOperation, UniqueConstraint
from reliability.models import Job, ProcessedKey
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
        with pytest.raises(KeyConflict, match="'a' was enqueued"):
            enqueue_many(
                "charge", [("b", {"amount": 1}), ("a", {"amount": 2})], tenant=world.tenant()
            )


def test_too_many_at_a_time_and_an_unknown_tenant_are_refused() -> None:
    with world.local("mail", effect):
        too_many = [(str(n), None) for n in range(conf().enqueue_max + 1)]
        with pytest.raises(KeyNotAccepted, match="At most 10000 jobs at a time, not 10001"):
            enqueue_many("mail", too_many, tenant=world.tenant())
        with pytest.raises(KeyNotAccepted, match="no tenant 'nobody'"):
            enqueue("mail", key="k", tenant="nobody")
        assert enqueue_many("mail", [], tenant=world.tenant()) == []


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
