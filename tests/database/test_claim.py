"""Layer 1 on real PostgreSQL: keys, operations, conflicts, races."""

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, close_old_connections, connection, transaction

from reliability import dispatch
from reliability.claim.accept import Asking, Delivered, claim, claim_all
from reliability.claim.enqueue import Absorbed, Accepted, Duplicate, enqueue
from reliability.errors import KeyConflict, KeyNotAccepted, TryAgain
from reliability.handlers import Event, MappedOperation
from reliability.models import (
    Body,
    DeadLetter,
    Delivery,
    Job,
    Operation,
    ProcessedKey,
    Receipt,
)
from reliability.work.drain import drain
from tests.database import world

pytestmark = pytest.mark.django_db


def charge(reference: str, amount_minor: int = 1000) -> MappedOperation:
    return MappedOperation(
        operation_class="charge", reference=reference, amount_minor=amount_minor,
        currency="EUR", exponent=2, occurred_at=datetime(2026, 11, 1, tzinfo=UTC),
    )  # fmt: skip


def delivered() -> Delivered:
    return Delivered(
        peer="192.0.2.7", size_bytes=12, sha256="ab" * 32, answer=202, scheme="stripe",
        secret_id=7, verifier_version=3, signed_at=datetime(2026, 11, 2, tzinfo=UTC),
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
    [again] = world.take_in(source, world.asked("evt_2", operation=charge("ch_1")))
    assert (again.verdict, again.claimant, again.job_id) == ("duplicate", "evt_1", None)
    drain("local")
    assert Group.objects.filter(name__startswith="acme evt").count() == 1
    second = ProcessedKey.objects.get(key="evt_2")
    assert second.absorbed
    verdicts = second.receipts.order_by("pk").values_list("verdict", flat=True)
    assert list(verdicts) == ["absorbed", "duplicate"]
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


def test_all_that_is_known_of_an_event_is_written_down() -> None:
    source = world.source()
    operation = replace(charge("ch_1"), batch="po_1")
    event = world.asked(
        "evt_1", operation=operation, downstream_key="d_1", asked_by="ops", unconfirmed=True,
        held="paused", replayable=True, headers={"user-agent": "Stripe"},
    )  # fmt: skip
    [fate] = world.take_in(source, event)
    key = ProcessedKey.objects.get()
    assert (key.kind, key.downstream_key, key.asked_by) == (event.kind, "d_1", "ops")
    assert (key.unconfirmed, key.occurred_at) == (True, operation.occurred_at)
    assert (key.amount_minor, key.currency, key.exponent) == (1000, "EUR", 2)
    done = Operation.objects.get()
    assert (done.tenant, done.source, done.key) == (source.tenant, source, key)
    assert (done.operation_class, done.reference, done.batch) == ("charge", "ch_1", "po_1")
    assert (done.amount_minor, done.currency, done.exponent) == (1000, "EUR", 2)
    assert done.occurred_at == operation.occurred_at
    body = Body.objects.get()
    assert (json.loads(bytes(body.raw)), body.replayable) == ({"id": "evt_1"}, True)
    assert body.headers == {"user-agent": "Stripe"}
    job = Job.objects.get()
    assert (job.key, job.queue, job.held) == (key, "local", "paused")
    assert (fate.n, fate.job_id, fate.state) == (1, job.public_id, "ready")
    assert (fate.claimant, fate.done_at) == (None, None)


def test_all_that_is_known_of_a_delivery_is_written_down_and_its_receipt_names_it() -> None:
    source = world.source()
    claim(source, [world.asked("evt_1")], delivered=delivered())
    brought = Receipt.objects.get().delivery
    assert brought is not None
    assert (brought.tenant, brought.source, brought.peer) == (
        source.tenant,
        source,
        "192.0.2.7",
    )
    assert (brought.size_bytes, bytes(brought.sha256)) == (12, b"\xab" * 32)
    assert (brought.answer, brought.scheme, brought.secret_id) == (202, "stripe", 7)
    assert (brought.verifier_version, brought.signed_at) == (3, delivered().signed_at)


def test_an_event_without_an_operation_has_a_time_of_its_own_and_no_headers_unless_given() -> (
    None
):
    at = datetime(2026, 10, 31, tzinfo=UTC)
    claim(world.source(), [world.asked("evt_1", occurred_at=at)])
    key = ProcessedKey.objects.get()
    assert (key.occurred_at, key.asked_by, key.unconfirmed) == (at, "", False)
    assert (key.operation_class, key.amount_minor) == (None, None)
    assert (key.currency, key.exponent) == (None, None)
    assert uuid.UUID(key.downstream_key).version == 4
    assert (Body.objects.get().headers, Body.objects.get().replayable) == ({}, False)
    assert Receipt.objects.get().delivery is None
    assert Job.objects.get().held == ""


def test_each_of_several_that_ask_at_once_is_told_of_its_own_events() -> None:
    source = world.source()
    world.take_in(source, world.asked("evt_2"))
    fates = claim_all(
        [
            Asking(source, [world.asked("evt_1"), world.asked("evt_2")], delivered()),
            Asking(source, [], delivered()),
            Asking(source, [world.asked("evt_3")], replace(delivered(), answer=200)),
            Asking(source, [world.asked("evt_4")]),
        ],
        first="SET LOCAL lock_timeout = '123ms'",
    )
    told = [[(fate.n, fate.verdict) for fate in its] for its in fates]
    assert told == [
        [(1, "accepted"), (2, "duplicate")],
        [],
        [(3, "accepted")],
        [(4, "accepted")],
    ]
    assert Delivery.objects.count() == 3
    brought = Receipt.objects.values_list("key__key", "verdict", "delivery__answer")
    assert sorted(brought, key=str) == [
        ("evt_1", "accepted", 202),
        ("evt_2", "accepted", None),
        ("evt_2", "duplicate", 202),
        ("evt_3", "accepted", 200),
        ("evt_4", "accepted", None),
    ]
    assert world.query("SHOW lock_timeout") == [("123ms",)]


def test_one_that_is_absorbed_by_its_neighbour_is_told_of_it_and_of_no_others_operation() -> (
    None
):
    source = world.source()
    other_class = replace(charge("ch_1"), operation_class="refund")
    world.take_in(world.source(of="borealis"), world.asked("theirs", operation=charge("ch_1")))
    world.take_in(world.source("test"), world.asked("elsewhere", operation=charge("ch_1")))
    world.take_in(source, world.asked("class", operation=other_class))
    world.take_in(source, world.asked("reference", operation=charge("ch_0")))
    first, second = world.take_in(
        source,
        *(world.asked(key, operation=charge("ch_1")) for key in ("evt_1", "evt_2")),
    )
    assert (first.verdict, first.claimant) == ("accepted", None)
    assert (second.verdict, second.claimant) == ("absorbed", "evt_1")


@contextmanager
def never_inserted(key: str) -> Iterator[None]:
    """Let the database pass over a key as it does where another claim inserts it first."""
    world.query(
        "CREATE FUNCTION pass_over() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.key = TG_ARGV[0] THEN RETURN NULL; END IF; RETURN NEW; END $$"
    )
    world.query(
        "CREATE TRIGGER passes_over BEFORE INSERT ON reliability_processedkey "
        f"FOR EACH ROW EXECUTE FUNCTION pass_over('{key}')"
    )
    try:
        yield
    finally:
        world.query("DROP FUNCTION pass_over CASCADE")


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (None, "another claim of this key came and went; ask again"),
        (charge("ch_1"), "another delivery of this key came first; ask again"),
    ],
)
def test_a_key_that_others_win_again_and_again_is_try_again_and_spoils_no_transaction(
    operation: MappedOperation | None, why: str
) -> None:
    source = world.source()
    with never_inserted("evt_1"), pytest.raises(TryAgain) as refused:
        world.take_in(source, world.asked("evt_1", operation=operation))
    assert str(refused.value) == why
    assert (ProcessedKey.objects.count(), Operation.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_where_one_of_two_cannot_be_claimed_neither_is() -> None:
    source = world.source()
    with never_inserted("evt_2"), pytest.raises(TryAgain):
        world.take_in(source, world.asked("evt_1"), world.asked("evt_2"))
    assert (ProcessedKey.objects.count(), Job.objects.count()) == (0, 0)


def test_an_error_that_no_other_claim_made_is_not_try_again() -> None:
    nameless = replace(world.asked("evt_1"), kind=None)  # type: ignore[arg-type]
    with pytest.raises(IntegrityError, match="kind"):
        world.take_in(world.source(), nameless)


@pytest.mark.django_db(transaction=True)
def test_a_key_that_another_claims_first_is_its_duplicate_and_the_others_are_as_asked() -> (
    None
):
    source = world.source()
    claimed = threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                world.take_in(source, world.asked("evt_2"))
                claimed.set()
                for _ in range(1_000):
                    [[waits]] = world.query("SELECT count(*) FROM pg_locks WHERE NOT granted")
                    if waits:
                        break
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert claimed.wait(10)
    some = [world.asked(key) for key in ("evt_1", "evt_2", "evt_3")]
    fates = claim(source, some, delivered=delivered())
    holder.join()
    assert [(fate.n, fate.verdict) for fate in fates] == [
        (1, "accepted"),
        (2, "duplicate"),
        (3, "accepted"),
    ]
    jobs = dict(Job.objects.values_list("key__key", "public_id"))
    assert [fate.job_id for fate in fates] == [jobs[event.key] for event in some]
    [delivery] = Delivery.objects.all()
    assert delivery.receipts.count() == 3


@pytest.mark.django_db(transaction=True)
def test_the_bell_of_a_queue_rings_for_its_new_jobs_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung: list[tuple[str, int]] = []
    monkeypatch.setattr(dispatch, "ring", lambda queue, times: rung.append((queue, times)))
    source = world.source()
    world.take_in(source, world.asked("known"))
    world.take_in(
        source,
        world.asked("known"),
        world.asked("evt_1"),
        world.asked("evt_2"),
        world.asked("to ask about", unconfirmed=True),
        world.asked("dead", buried=("unroutable", "nobody handles this")),
    )
    assert rung == [("local", 1), ("local", 2), ("outside", 1)]


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
            with pytest.raises(TryAgain) as refused:
                world.take_in(source, world.asked("evt_1"))
    finally:
        go.set()
        holder.join()
        close_old_connections()
    assert str(refused.value) == "the database cannot take this event right now; ask again"


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
