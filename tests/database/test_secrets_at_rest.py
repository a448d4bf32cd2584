"""Secrets at rest: nothing readable in a dump, and good for nothing in another row."""

import os
from typing import Any

import pytest

from reliability.models import ApiCredential, Source, SourceSecret
from reliability.models.sealing import CannotUnseal
from tests.database import senders, world

pytestmark = pytest.mark.django_db

OLD, NEW = os.urandom(32), os.urandom(32)


@pytest.fixture
def source() -> Source:
    made = senders.source("stripe")
    ApiCredential.keep(made, "rk_live_canary")
    return made


def test_a_dump_of_the_database_holds_no_secret_in_any_form(source: Source) -> None:
    dumped = ""
    for table in ("source", "sourcesecret", "apicredential"):
        rows = world.query(f"SELECT row_to_json(t)::text FROM reliability_{table} t")
        dumped += "".join(text for (text,) in rows)
    for secret in (senders.SECRETS["stripe"], "rk_live_canary"):
        assert secret not in dumped
        assert secret.encode().hex() not in dumped


@pytest.mark.parametrize("of", ["acme", "borealis"])
def test_a_secret_copied_to_another_source_does_not_open(of: str, source: Source) -> None:
    other = world.source("copied-to", of=of)
    sealed = SourceSecret.objects.get(source=source).sealed
    SourceSecret.objects.filter(source=other).update(sealed=sealed)
    with pytest.raises(CannotUnseal):
        SourceSecret.objects.get(source=other).open()


def test_a_credential_cannot_take_the_place_of_a_secret(source: Source) -> None:
    sealed = ApiCredential.objects.get(source=source).sealed
    SourceSecret.objects.filter(source=source).update(sealed=sealed)
    with pytest.raises(CannotUnseal):
        SourceSecret.objects.get(source=source).open()


@pytest.mark.parametrize("at", [-1, 8, 20])
def test_a_changed_byte_is_noticed(at: int, source: Source) -> None:
    row = SourceSecret.objects.get(source=source)
    changed = bytearray(row.sealed)
    changed[at] ^= 1
    SourceSecret.objects.update(sealed=bytes(changed))
    with pytest.raises(CannotUnseal):
        SourceSecret.objects.get(source=source).open()


def test_after_two_rotations_of_the_ring_each_secret_opens_while_its_key_is_there(
    settings: Any,
) -> None:
    settings.RELIABILITY_KEY_RING = {"k1": OLD}
    first = senders.source("stripe", "first")
    settings.RELIABILITY_KEY_RING = {"k2": NEW, "k1": OLD}
    second = senders.source("stripe", "second")
    assert [SourceSecret.objects.get(source=one).open() for one in (first, second)] == [
        senders.SECRETS["stripe"]
    ] * 2
    settings.RELIABILITY_KEY_RING = {"k2": NEW}
    assert SourceSecret.objects.get(source=second).open() == senders.SECRETS["stripe"]
    with pytest.raises(CannotUnseal, match="lacks the key"):
        SourceSecret.objects.get(source=first).open()
