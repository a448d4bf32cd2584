"""What a process keeps in memory between requests is forgotten between tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.database.live import Web


@pytest.fixture(autouse=True)
def fresh_door(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know no source, and count refusals only when a test says so, never from a timer."""
    from reliability.claim import door, refusals  # noqa: PLC0415 - needs the settings

    monkeypatch.setattr(refusals, "FLUSH_SECONDS", 3600.0)
    door.forget()
    yield
    door.forget()
    refusals.forget()


@pytest.fixture(scope="session")
def web(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Web]":
    """Run the real web server; its requests commit, so ask for it in transactional tests."""
    from tests.database.live import serving  # noqa: PLC0415 - needs the settings

    with serving(tmp_path_factory.mktemp("web") / "web.log") as running:
        yield running
