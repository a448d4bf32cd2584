"""Layer 1 on real PostgreSQL: keys, operations, conflicts, races."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, close_old_connections, connection, transaction

from reliability.claim.enqueue import Absorbed, Accepted, Duplicate, enqueue
from reliability.errors import KeyConflict, KeyNotAccepted, TryAgain
from reliability.handlers import Event, MappedOperation
from reliability.models import Body, DeadLetter, Job, Operation, ProcessedKey, Receipt
from reliability.work.drain import drain
from tests.database import world

pytestmark = pytest.mark.django_db


def charge(reference: str, amount_minor: int = 1000) -> MappedOperation:
    return MappedOperation(
        operation_class="charge", reference=reference, amount_minor=amount_minor,
        currency="EUR", exponent=2, occurred_at=datetime(2026, 11, 1, tzinfo=UTC),
    )  # fmt: skip


def effect(event: Event) -> None:
    Group.objects.create(name=f"{event.tenant} {event.key}")


def drawn(payload: object) -> MappedOperation | None:
    assert isinstance(payload, dict)
    return charge(payload["charge"], payload.get("amount", 1000))


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    with (
        world.local("local", effect),
        world.local("charge", effect, operation=drawn),
        world.local("stripe.charge.succeeded", effect),
    ):
        yield


def test_a_second_delivery_is_a_duplicate_that_tells_the_originals_state() -> None:
    source = world.source()
    [first] = world.take_in(source, world.asked("evt_1"))
    drain("local")
    [second] = world.take_in(source, world.asked("evt_1"))
    assert (first.verdict, second.verdict) == ("accepted", "duplicate")
    assert (second.job_id, second.state) == (first.job_id, "done")
    assert Job.objects.count() == 1
    assert list(Receipt.objects.order_by("pk").values_list("verdict", flat=True)) == [
        "accepted",
        "duplicate",
    ]


def test_the_same_id_in_two_tenants_is_two_jobs() -> None:
    for slug in ("acme", "borealis"):
        [fate] = world.take_in(world.source(of=slug), world.asked("evt_1"))
        assert fate.verdict == "accepted"
    drain("local")
    assert {group.name for group in Group.objects.filter(name__endswith="evt_1")} == {
        "acme evt_1",
        "borealis evt_1",
    }


def test_equal_ids_of_two_tenants_do_not_meet_downstream() -> None:
    for slug in ("acme", "borealis"):
        world.take_in(world.source(of=slug), world.asked("evt_1"))
    keys = ProcessedKey.objects.values_list("downstream_key", flat=True)
    assert len(set(keys)) == 2


def test_two_events_with_equal_payloads_and_operations_of_their_own_are_two_effects() -> None:
    source = world.source()
    for key, reference in (("evt_1", "ch_1"), ("evt_2", "ch_2")):
        world.take_in(source, world.asked(key, body={"x": 1}, operation=charge(reference)))
    drain("local")
    assert Group.objects.filter(name__startswith="acme evt").count() == 2


def test_a_second_event_of_a_claimed_operation_is_absorbed_and_both_traces_say_so() -> None:
    source = world.source()
    world.take_in(source, world.asked("evt_1", operation=charge("ch_1")))
    [fate] = world.take_in(source, world.asked("evt_2", operation=charge("ch_1")))
    assert (fate.verdict, fate.claimant, fate.job_id) == ("absorbed", "evt_1", None)
    drain("local")
    assert Group.objects.filter(name__startswith="acme evt").count() == 1
    second = ProcessedKey.objects.get(key="evt_2")
    assert second.absorbed
    assert second.receipts.get().verdict == "absorbed"
    siblings = ProcessedKey.objects.filter(
        source=source, operation_class="charge", operation_reference="ch_1"
    )
    assert {key.key for key in siblings} == {"evt_1", "evt_2"}


def test_two_partial_refunds_of_one_charge_are_two_operations() -> None:
    source = world.source()
    for n in (1, 2):
        refund = MappedOperation(
            operation_class="refund", reference=f"re_{n}", amount_minor=500
        )
        [fate] = world.take_in(source, world.asked(f"evt_{n}", operation=refund))
        assert fate.verdict == "accepted"
    assert Operation.objects.filter(operation_class="refund").count() == 2


def test_one_event_redelivered_20_times_reformatted_is_20_duplicates_and_no_conflict() -> None:
    source = world.source()
    world.take_in(source, world.asked("evt_1", operation=charge("ch_1")))
    for n in range(20):
        body = {"pending_webhooks": n, "id": "evt_1"}
        [fate] = world.take_in(
            source, world.asked("evt_1", body=body, operation=charge("ch_1"))
        )
        assert fate.verdict == "duplicate"
    assert Receipt.objects.filter(verdict="conflict").count() == 0
    assert Body.objects.filter(key__key="evt_1", first=True).count() == 1


def test_a_redelivery_with_another_amount_is_a_conflict_and_the_first_stands() -> None:
    source = world.source()
    world.take_in(source, world.asked("evt_1", operation=charge("ch_1", 1000)))
    [fate] = world.take_in(source, world.asked("evt_1", operation=charge("ch_1", 999)))
    assert fate.verdict == "conflict"
    differs = Receipt.objects.get(verdict="conflict").differs
    assert differs is not None
    assert differs["amount_minor"] == 999
    assert Operation.objects.get().amount_minor == 1000
    assert Job.objects.count() == 1


def test_an_event_that_is_dead_at_the_door_is_a_letter_with_its_bytes() -> None:
    source = world.source()
    world.take_in(
        source, world.asked("evt_1", buried=("unroutable", "nobody handles this")),
    )  # fmt: skip
    letter = DeadLetter.objects.get()
    assert (letter.outcome, letter.job.state, letter.reason) == (
        "unroutable",
        "dead",
        "nobody handles this",
    )
    assert json.loads(bytes(letter.job.key.bodies.get().raw)) == {"id": "evt_1"}
    assert drain("local") == 0


def test_two_events_of_one_key_in_one_body_are_one_event() -> None:
    fates = world.take_in(world.source(), world.asked("evt_1"), world.asked("evt_1"))
    assert [fate.verdict for fate in fates] == ["accepted"]


@pytest.mark.django_db(transaction=True)
def test_fifty_concurrent_claims_of_one_key_make_one_job() -> None:
    source = world.source()
    verdicts: list[str] = []
    start = threading.Barrier(10)

    def deliver() -> None:
        try:
            start.wait()
            for _ in range(5):
                [fate] = world.take_in(source, world.asked("evt_1", operation=charge("ch_1")))
                verdicts.append(fate.verdict)
        finally:
            connection.close()

    threads = [threading.Thread(target=deliver) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(verdicts) == ["accepted"] + ["duplicate"] * 49
    assert (Job.objects.count(), Operation.objects.count()) == (1, 1)


def test_an_operation_without_its_key_is_refused_by_the_database() -> None:
    source = world.source()
    with pytest.raises(IntegrityError, match="operation_belongs_to_its_key"):
        Operation.objects.create(
            tenant=source.tenant, source=source, operation_class="charge", reference="ch_1",
            key_id=10**12, occurred_at=datetime(2026, 11, 1, tzinfo=UTC),
        )  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_holder_that_does_not_let_go_is_try_again_and_never_duplicate() -> None:
    source = world.source()
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            world.take_in(source, world.asked("evt_1"))
            held.set()
            go.wait(10)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
            with pytest.raises(TryAgain):
                world.take_in(source, world.asked("evt_1"))
    finally:
        go.set()
        holder.join()
        close_old_connections()


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "nul\x00"])
def test_a_key_that_is_not_1_to_255_plain_bytes_is_refused(key: str) -> None:
    with pytest.raises(KeyNotAccepted):
        enqueue("local", key=key, tenant=world.tenant())
    assert ProcessedKey.objects.count() == 0


def test_a_key_is_opaque() -> None:
    for key in ("k", " k", "K", "k ", "ｋ"):
        assert isinstance(enqueue("local", key=key, tenant=world.tenant()), Accepted)


def test_enqueue_answers_a_duplicate_with_the_originals_result() -> None:
    with world.local("adds", lambda event: {"sum": 3}):
        first = enqueue("adds", key="k", tenant=world.tenant())
        drain("local")
        second = enqueue("adds", key="k", tenant=world.tenant())
    assert isinstance(first, Accepted)
    assert second == Duplicate(first.job_id, "done", {"sum": 3})


def test_enqueue_is_an_outbox_rolled_back_with_its_caller() -> None:
    with transaction.atomic():
        enqueue("local", key="k", tenant=world.tenant())
        transaction.set_rollback(True)
    assert ProcessedKey.objects.count() == 0


def test_enqueue_under_a_claimed_operation_is_absorbed() -> None:
    enqueue("charge", key="a", tenant=world.tenant(), payload={"charge": "ch_1"})
    again = enqueue("charge", key="b", tenant=world.tenant(), payload={"charge": "ch_1"})
    assert again == Absorbed("a")


def test_enqueue_of_one_key_with_another_amount_is_a_conflict() -> None:
    enqueue("charge", key="a", tenant=world.tenant(), payload={"charge": "ch_1"})
    with pytest.raises(KeyConflict, match="The first stands"):
        enqueue(
            "charge", key="a", tenant=world.tenant(), payload={"charge": "ch_1", "amount": 1}
        )


def test_an_unknown_kind_is_refused_before_any_row_exists() -> None:
    with pytest.raises(KeyNotAccepted, match="has no handler here"):
        enqueue("nobody's", key="k", tenant=world.tenant())
    assert ProcessedKey.objects.count() == 0
