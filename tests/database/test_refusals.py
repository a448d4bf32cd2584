"""A promise that cannot be kept is refused: at enqueue before any row, and at start."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as in_force

from reliability import conf as conf_module
from reliability import enqueue
from reliability.checks import (
    every_kind_recognises_a_repeat,
    every_limit_fits_the_lease,
    every_window_outlasts_its_policy,
    settings_are_sane,
    user_facing_kinds_answer_soon,
)
from reliability.errors import KeyNotAccepted
from reliability.handlers import Event, LocalTransaction, ProviderHeader
from reliability.models import Job, ProcessedKey, Source
from reliability.policy import Backoff, RunOnce
from tests.database import world

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
TWICE = Backoff(first=HOUR, cap=HOUR, attempts=2)


def nothing(event: Event) -> None:
    return None


def rows() -> tuple[int, int, int]:
    return Source.objects.count(), ProcessedKey.objects.count(), Job.objects.count()


def test_a_kind_with_retries_and_no_sink_is_refused_before_any_row_exists() -> None:
    with world.kind("charge.card", nothing), pytest.raises(KeyNotAccepted) as refused:
        enqueue("charge.card", key="k-1", tenant=world.tenant())
    said = str(refused.value)
    assert "'charge.card' has retries and no sink" in said
    for remedy in ("LocalTransaction", "UniqueConstraint", "ProviderHeader", "DedupeWindow",
                   "RunOnce"):  # fmt: skip
        assert remedy in said
    assert rows() == (0, 0, 0)


def test_a_window_shorter_than_the_worst_case_is_refused_with_both_figures() -> None:
    sink = ProviderHeader(window=HOUR)
    with (
        world.kind("charge.card", nothing, sink=sink, policy=TWICE),
        pytest.raises(KeyNotAccepted) as refused,
    ):
        enqueue("charge.card", key="k-1", tenant=world.tenant())
    # 1 h wait + 2 x 180 s + 10 x 420 s + 12 x 180 s
    assert "may take 2:52:00 at worst" in str(refused.value)
    assert "forgets the key after 1:00:00" in str(refused.value)
    assert rows() == (0, 0, 0)


def test_an_unknown_kind_is_refused_before_any_row_exists() -> None:
    with pytest.raises(KeyNotAccepted, match=r"'charge\.crad' has no handler"):
        enqueue("charge.crad", key="k-1", tenant=world.tenant())
    assert rows() == (0, 0, 0)


@pytest.mark.parametrize("key", ["", "x" * 256, "é" * 128, "line\nbreak", "nul\x00"])
def test_a_key_that_is_none_is_refused_before_any_row_exists(key: str) -> None:
    with (
        world.local("mail", nothing),
        pytest.raises(KeyNotAccepted, match="key of this 'mail'"),
    ):
        enqueue("mail", key=key, tenant=world.tenant())
    assert rows() == (0, 0, 0)


def test_a_payload_that_is_not_json_is_refused_before_any_row_exists() -> None:
    for payload in ({1, 2}, float("nan")):
        with world.local("mail", nothing), pytest.raises(KeyNotAccepted, match="is not JSON"):
            enqueue("mail", key="k-1", tenant=world.tenant(), payload=payload)
    assert rows() == (0, 0, 0)


def test_run_once_with_another_sink_than_a_header_is_refused_where_it_is_declared() -> None:
    with (
        pytest.raises(KeyNotAccepted, match="drop the sink or choose a policy with retries"),
        world.local("mail", nothing, policy=RunOnce()),
    ):
        pass


# At start


def test_retries_without_a_sink_are_error_e010() -> None:
    with world.kind("charge.card", nothing), world.kind("fine", nothing, policy=RunOnce()):
        [found] = every_kind_recognises_a_repeat()
    assert (found.id, "'charge.card'" in found.msg) == ("reliability.E010", True)
    assert found.hint is not None
    assert "RunOnce()" in found.hint


def test_a_window_too_short_is_error_e011() -> None:
    with (
        world.kind("short", nothing, sink=ProviderHeader(window=HOUR), policy=TWICE),
        world.kind("long", nothing, sink=ProviderHeader(window=3 * HOUR), policy=TWICE),
    ):
        assert [found.id for found in every_window_outlasts_its_policy()] == [
            "reliability.E011"
        ]


def test_a_limit_as_long_as_the_lease_is_error_e012() -> None:
    lease = timedelta(seconds=300)
    with (
        world.local("long", nothing, limit=lease),
        world.local("fits", nothing, limit=lease - timedelta(seconds=1)),
    ):
        assert [found.id for found in every_limit_fits_the_lease()] == ["reliability.E012"]


@pytest.mark.parametrize(
    ("attempts", "found"),
    [(2, ["reliability.W011"]), (3, []), (5, []), (6, ["reliability.W011"])],
)
def test_a_user_facing_kind_outside_three_to_five_attempts_is_warning_w011(
    attempts: int,
    found: list[str],
) -> None:
    policy = Backoff(
        first=timedelta(milliseconds=200), cap=HOUR, attempts=attempts, user_facing=True
    )
    with world.local("ask", nothing, policy=policy):
        assert [one.id for one in user_facing_kinds_answer_soon()] == found


@pytest.fixture
def fresh_conf() -> Iterator[None]:
    conf_module.conf.cache_clear()
    yield
    conf_module.conf.cache_clear()


@pytest.mark.usefixtures("fresh_conf")
def test_settings_that_contradict_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = {"job_limit": HOUR, "alert_low": 26}
    monkeypatch.setattr(in_force, "RELIABILITY", wrong)
    assert [one.id for one in settings_are_sane()] == ["reliability.E001", "reliability.E002"]


BAD_KINDS = {
    "no sink": ("@handler('charge.card')", "reliability.E010"),
    "window": (
        "@handler('charge.card', sink=ProviderHeader(window=timedelta(hours=1)))",
        "reliability.E011",
    ),
    "one attempt": (
        "@handler('charge.card', policy=Backoff(first=H, cap=H, attempts=1))",
        "write policy=RunOnce()",
    ),
}


@pytest.mark.parametrize("bad", BAD_KINDS)
def test_start_refuses_a_kind_that_cannot_keep_the_promise(bad: str, tmp_path: Path) -> None:
    declared, why = BAD_KINDS[bad]
    (tmp_path / "own_handlers.py").write_text(
        "from datetime import timedelta\n"
        "from reliability import Backoff, ProviderHeader, handler\n"
        f"H = timedelta(hours=1)\n{declared}\ndef charge(event): ...\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, str(in_force.BASE_DIR / "manage.py"), "check"],
        env={**os.environ, "PYTHONPATH": paths, "RELIABILITY_HANDLERS": "own_handlers"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode != 0
    assert why in found.stderr
    assert "Traceback" not in found.stderr


def test_a_local_kind_needs_no_more_than_its_sink() -> None:
    with world.kind("mail", nothing, sink=LocalTransaction()):
        assert every_kind_recognises_a_repeat() == []
        assert every_window_outlasts_its_policy() == []
