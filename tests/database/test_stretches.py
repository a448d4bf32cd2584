"""Conservation of a long ledger: counted a few stretches at a time, the newest keys at once."""

from datetime import UTC, datetime, timedelta

import pytest

from reliability.alerts.letters import Scope
from reliability.alerts.measures import first_lost, keys_without_job
from reliability.conf import conf
from reliability.console.conservation import conservation
from reliability.models import Source, Stretch
from reliability.sweep.ledger import count_ledger
from tests.database import many, world

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def keys_from(number: int, source: Source, kind: str, letters: int) -> None:
    """Claim keys whose ids begin a stretch: 20 000 ids each."""
    world.query("SELECT setval('reliability_processedkey_id_seq', %s)", number * 20_000)
    many.dead_letters(source, letters, kind=kind)


def lose(key: str) -> None:
    found = "(SELECT id FROM reliability_processedkey WHERE key = %s)"
    of = f"(SELECT id FROM reliability_job WHERE key_id = {found})"
    world.query(f"DELETE FROM reliability_deadletter WHERE job_id = {of}", key)
    world.query(f"DELETE FROM reliability_job WHERE key_id = {found}", key)


@pytest.fixture
def source() -> Source:
    """Fill stretches 1 and 3, and begin 4."""
    source = world.source()
    for number, kind, letters in ((1, "a", 5), (3, "b", 4), (4, "c", 3)):
        keys_from(number, source, kind, letters)
    return source


def test_full_stretches_are_counted_and_the_newest_keys_live(source: Source) -> None:
    assert count_ledger(NOW) == 2
    assert list(Stretch.objects.order_by("number").values_list("number", "dead")) == [
        (1, 5), (3, 4),
    ]  # fmt: skip
    told = conservation(source.tenant)
    assert (told.accepted, told.states["dead"], told.missing) == (12, 12, 0)
    assert told.counted_at == NOW


def test_a_short_ledger_is_counted_now(source: Source) -> None:
    told = conservation(source.tenant)
    assert (told.accepted, told.missing, told.counted_at) == (12, 0, None)


def test_a_lost_job_of_a_counted_stretch_is_missed_at_its_next_count(source: Source) -> None:
    count_ledger(NOW)
    lose("a-2")
    assert conservation(source.tenant).missing == 0, "old keys are not read again"
    assert count_ledger(NOW + MINUTE) == 2, "both are counted again"
    assert conservation(source.tenant).missing == 1
    assert keys_without_job(Scope(tenant=source.tenant), NOW) == {source.pk: 1}
    assert first_lost(source.pk) == "a-2"


def test_a_lost_job_of_the_newest_keys_is_missed_at_once(source: Source) -> None:
    count_ledger(NOW)
    lose("c-3")
    assert conservation(source.tenant).missing == 1
    assert keys_without_job(Scope(tenant=source.tenant), NOW) == {source.pk: 1}
    assert first_lost(source.pk) == "c-3"


def test_a_pass_counts_one_new_stretch_and_the_one_counted_longest_ago(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(conf().__dict__, "stretches_per_pass", 1)
    counts = []
    for n in range(4):
        count_ledger(NOW + n * MINUTE)
        counted = Stretch.objects.order_by("number").values_list("number", "counted_at")
        counts.append([(number, (at - NOW) // MINUTE) for number, at in counted])
    assert counts == [[(1, 0)], [(1, 1), (3, 1)], [(1, 2), (3, 1)], [(1, 2), (3, 3)]]


def test_a_stretch_has_its_first_key_and_its_last_and_none_of_its_neighbours() -> None:
    source = world.source()
    for key in (20_000, 39_999, 40_000, 59_999, 119_999, 120_000):
        world.query("SELECT setval('reliability_processedkey_id_seq', %s)", key - 1)
        many.dead_letters(source, 1, kind=f"key {key}")
    assert count_ledger(NOW) == 3
    counted = Stretch.objects.order_by("number").values_list("number", "accepted")
    assert list(counted) == [(1, 2), (2, 2), (5, 1)]


def test_an_empty_ledger_has_no_stretch_to_count() -> None:
    assert count_ledger(NOW) == 0
    assert not Stretch.objects.exists()


def test_each_source_and_tenant_has_its_own_count(source: Source) -> None:
    other = world.source("other", of="globex")
    keys_from(5, other, "d", 2)
    keys_from(6, source, "e", 1)
    count_ledger(NOW)
    assert conservation(other.tenant).accepted == 2
    assert conservation(source.tenant).accepted == 13
