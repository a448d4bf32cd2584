"""Deliveries that arrive at the same moment: one statement, and still each to its own fate."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DataError, connection, transaction
from django.utils import timezone

from reliability import dispatch, sql
from reliability.claim import together
from reliability.claim.accept import Asked, Asking, Delivered, Fate, claim_all
from reliability.claim.together import claim_together
from reliability.errors import TryAgain
from reliability.handlers import MappedOperation
from reliability.models import Delivery, Job, Receipt, Source
from tests.database import world

pytestmark = pytest.mark.django_db(transaction=True)

WAITERS = 5


def delivered() -> Delivered:
    return Delivered(
        peer="127.0.0.1", size_bytes=2, sha256="00" * 32, answer=200, scheme="stripe",
        secret_id=None, verifier_version=1, signed_at=timezone.now(),
    )  # fmt: skip


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect how many events each claim statement took."""
    taken: list[int] = []
    run = sql.rows

    def counting(name: str, into: type[Any], /, **params: Any) -> list[Any]:
        taken.append(len(params.get("bodies", ())))
        return run(name, into, **params)

    monkeypatch.setattr(sql, "rows", counting)
    return taken


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the commands sent beside the statements."""
    sent: list[str] = []
    run = sql.command

    def noting(text: str) -> None:
        sent.append(text)
        run(text)

    monkeypatch.setattr(sql, "command", noting)
    return sent


@pytest.fixture
def threads() -> Iterator[Callable[..., "Future[list[Fate]]"]]:
    with ThreadPoolExecutor(WAITERS + 1) as pool:

        def deliver(source: Source, *asked: Asked) -> "Future[list[Fate]]":
            def run() -> list[Fate]:
                try:
                    return claim_together(source, asked, delivered=delivered())
                finally:
                    connection.close()

            return pool.submit(run)

        yield deliver


@contextmanager
def held(source: Source, key: str) -> Iterator[None]:
    """Claim a key and do not commit before the block ends."""
    claimed, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            world.take_in(source, world.asked(key))
            claimed.set()
            done.wait(20)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert claimed.wait(10)
    try:
        yield
    finally:
        done.set()
        holder.join()


def until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2_000):
        if true():
            return
        pause.wait(0.005)
    raise AssertionError("it never came to that")


def waiting(count: int) -> None:
    """Return once so many deliveries wait for the one that leads."""
    until(lambda: len(together._queue._waiting) == count)


def stuck() -> None:
    """Return once a session waits for another's lock."""

    def found() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return bool(cursor.fetchone()[0])

    until(found)


def test_those_who_came_while_one_was_claimed_are_claimed_in_one_statement(
    threads: Callable[..., "Future[list[Fate]]"],
    statements: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        others = [threads(source, world.asked(f"evt_{n}")) for n in range(WAITERS)]
        waiting(WAITERS)
        statements.clear()
    assert [fate.verdict for fate in first.result(20)] == ["duplicate"]
    assert [one.result(20)[0].verdict for one in others] == ["accepted"] * WAITERS
    # The first asks again for the key it lost; then the heir takes all the others.
    assert statements == [1, WAITERS]
    assert (Job.objects.count(), Delivery.objects.count()) == (6, 6)
    assert set(Receipt.objects.exclude(delivery=None).values_list("verdict", flat=True)) == {
        "accepted",
        "duplicate",
    }


def test_a_statement_takes_no_more_than_so_many_events(
    threads: Callable[..., "Future[list[Fate]]"],
    statements: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        others = []
        for count, keys in enumerate((["heir"], [f"evt_{n}" for n in range(31)], ["last"]), 1):
            others.append(threads(source, *map(world.asked, keys)))
            waiting(count)
        statements.clear()
    first.result(20)
    assert [len(one.result(20)) for one in others] == [1, 31, 1]
    assert statements == [1, 32, 1]


def test_a_large_delivery_and_one_within_a_transaction_wait_for_nobody(
    threads: Callable[..., "Future[list[Fate]]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        # A body of JSON has two quotes more than the text in it.
        large = [
            threads(source, *(world.asked(f"many_{n}") for n in range(33))),
            threads(source, world.asked("long", body="x" * 65_535)),
        ]
        assert [len(one.result(10)) for one in large] == [33, 1]
        with transaction.atomic():
            [ours] = claim_together(source, [world.asked("ours")], delivered=delivered())
        assert ours.verdict == "accepted"
        small = [
            threads(source, *(world.asked(f"some_{n}") for n in range(32))),
            threads(source, world.asked("short", body="x" * 65_534)),
        ]
        waiting(2)
    assert [len(one.result(20)) for one in (first, *small)] == [1, 32, 1]


def test_two_events_of_one_key_in_one_delivery_are_one_event() -> None:
    twice = [world.asked("evt_1"), world.asked("evt_1")]
    fates = claim_together(world.source(), twice, delivered=delivered())
    assert [fate.verdict for fate in fates] == ["accepted"]


def test_a_claim_that_is_stuck_holds_up_the_others_only_for_their_patience(
    threads: Callable[..., "Future[list[Fate]]"],
) -> None:
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        other = threads(source, world.asked("evt_other"))
        assert [fate.verdict for fate in other.result(10)] == ["accepted"]
        assert not first.done()
    assert [fate.verdict for fate in first.result(20)] == ["duplicate"]


def test_where_one_cannot_be_claimed_the_others_are_and_it_finds_its_own_reason(
    threads: Callable[..., "Future[list[Fate]]"],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    commands: list[str],
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_long"):
        with held(source, "evt_short"):
            first = threads(source, world.asked("evt_short"))
            stuck()
            others = [threads(source, world.asked(f"evt_{n}")) for n in range(WAITERS - 1)]
            barred = threads(source, world.asked("evt_long"))
            waiting(WAITERS)
        assert [fate.verdict for fate in first.result(20)] == ["duplicate"]
        assert [one.result(20)[0].verdict for one in others] == ["accepted"] * (WAITERS - 1)
        with pytest.raises(TryAgain):
            barred.result(20)
    # Together they do not wait for a lock as long as the one that is alone with its own trouble.
    assert commands == ["SET LOCAL lock_timeout = '100ms'"]
    said = [(one.getMessage(), vars(one).get("why")) for one in caplog.records]
    assert ("claimed_alone", "TryAgain") in said


def test_two_deliveries_of_one_key_do_not_go_in_one_statement(
    threads: Callable[..., "Future[list[Fate]]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        twins = [threads(source, world.asked("evt_twin")) for _ in range(2)]
        waiting(2)
    first.result(20)
    assert sorted(one.result(20)[0].verdict for one in twins) == ["accepted", "duplicate"]


def test_deliveries_to_two_tenants_keep_to_their_own(
    statements: list[int],
) -> None:
    ours, theirs = world.source(), world.source(of="other")
    fates = claim_all(
        [Asking(source, [world.asked("evt_1")], delivered()) for source in (ours, theirs)]
    )
    assert [fate.verdict for its in fates for fate in its] == ["accepted", "accepted"]
    assert statements == [2]
    found = Receipt.objects.values_list("source", "key__source", "delivery__source", "tenant")
    assert sorted(found) == sorted(
        (source.pk, source.pk, source.pk, source.tenant_id) for source in (ours, theirs)
    )


class Bomb:
    """Goes off where the claim writes it down."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error


def bombed(key: str, error: BaseException) -> Asked:
    headers: Any = {"x": Bomb(error)}
    return world.asked(key, headers=headers)


@pytest.mark.parametrize("place", range(WAITERS))
def test_a_delivery_that_cannot_even_be_written_down_costs_no_other_its_answer(
    place: int,
    threads: Callable[..., "Future[list[Fate]]"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        others = []
        for n in range(WAITERS):
            poisoned = n == place
            asked = (
                bombed(f"evt_{n}", ZeroDivisionError())
                if poisoned
                else world.asked(f"evt_{n}")
            )
            others.append(threads(source, asked))
            waiting(n + 1)
    first.result(20)
    poison = others.pop(place)
    with pytest.raises(ZeroDivisionError):
        poison.result(20)
    assert [one.result(20)[0].verdict for one in others] == ["accepted"] * (WAITERS - 1)


def test_a_number_the_database_cannot_hold_costs_no_other_its_answer(
    threads: Callable[..., "Future[list[Fate]]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    huge = MappedOperation(
        operation_class="charge",
        reference="ch_1",
        amount_minor=2**70,
        currency="EUR",
        exponent=2,
    )
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        heir = threads(source, world.asked("evt_1"))
        waiting(1)
        poison = threads(source, world.asked("evt_2", operation=huge))
        waiting(2)
    first.result(20)
    assert heir.result(20)[0].verdict == "accepted"
    with pytest.raises(DataError):
        poison.result(20)


def test_when_the_thread_that_leads_dies_the_others_are_told_and_the_next_one_leads(
    threads: Callable[..., "Future[list[Fate]]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        heir = threads(source, bombed("evt_0", SystemExit()))
        waiting(1)
        others = [threads(source, world.asked(f"evt_{n}")) for n in (1, 2)]
        waiting(3)
    first.result(20)
    with pytest.raises(SystemExit):
        heir.result(20)
    assert [one.result(20)[0].verdict for one in others] == ["accepted"] * 2
    assert threads(source, world.asked("evt_3")).result(20)[0].verdict == "accepted"
    assert (together._queue._led, together._queue._waiting) == (False, [])


def test_equal_bodies_under_two_unsigned_ids_are_seen_beside_each_other_too(
    threads: Callable[..., "Future[list[Fate]]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 20)
    source = world.source()
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        twins = [
            threads(source, world.asked(key, body={}, replayable=True)) for key in ("a", "b")
        ]
        waiting(2)
    first.result(20)
    assert [one.result(20)[0].verdict for one in twins] == ["accepted"] * 2
    flags = Receipt.objects.filter(key__key__in=["a", "b"])
    assert sorted(flags.values_list("suspected_replay", flat=True)) == [False, True]


class Stuck:
    """Keeps whoever writes it down waiting."""

    def __init__(self) -> None:
        self.reached, self.goes_on = threading.Event(), threading.Event()

    def __str__(self) -> str:
        self.reached.set()
        self.goes_on.wait(20)
        return "at last"


def test_one_that_is_claimed_for_waits_no_longer_than_so_for_a_leader_that_falls_silent(
    threads: Callable[..., "Future[list[Fate]]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "PATIENCE_SECONDS", 2)
    monkeypatch.setattr(together, "TAKEN_SECONDS", 0.1)
    source = world.source()
    silent = Stuck()
    headers: Any = {"x": silent}
    with held(source, "evt_held"):
        first = threads(source, world.asked("evt_held"))
        stuck()
        heir = threads(source, world.asked("evt_0", headers=headers))
        waiting(1)
        other = threads(source, world.asked("evt_1"))
        waiting(2)
    assert silent.reached.wait(20)
    assert other.result(10)[0].verdict == "accepted"
    assert not heir.done()
    silent.goes_on.set()
    assert [one.result(20)[0].verdict for one in (heir, first)] == ["accepted", "duplicate"]
    assert Job.objects.count() == 3


def test_others_go_on_before_the_bell_is_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    led_when_rung: list[bool] = []
    monkeypatch.setattr(
        dispatch, "ring", lambda *_: led_when_rung.append(together._queue._led)
    )
    claim_together(world.source(), [world.asked("evt_1")], delivered=delivered())
    assert led_when_rung == [False]


def test_a_bell_rings_for_as_many_as_were_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[tuple[str, int]] = []
    monkeypatch.setattr(dispatch, "ring", lambda queue, times: rung.append((queue, times)))
    source, some = world.source(), [world.asked(f"evt_{n}") for n in range(3)]
    claim_together(source, some, delivered=delivered())
    claim_together(source, some, delivered=delivered())
    assert rung == [(some[0].bell, 3)]
