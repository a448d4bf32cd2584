"""What a process keeps in memory between requests is forgotten between tests."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def fresh_door(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know no source, and count refusals only when a test says so, never from a timer."""
    from reliability.claim import door, refusals  # noqa: PLC0415 - needs the settings

    monkeypatch.setattr(refusals, "FLUSH_SECONDS", 3600.0)
    door.forget()
    yield
    door.forget()
    refusals.forget()
