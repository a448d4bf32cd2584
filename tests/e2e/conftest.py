"""A real browser before a real server; skipped with one line where there is no Chromium."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.visits import PASSWORD, Visit

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
SWITCHES = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder, and skip it where it cannot run."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.django_db(transaction=True))
            if not CHROMIUM:
                item.add_marker(pytest.mark.skip(reason="no Chromium here: set CHROMIUM"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium once. Its driver keeps an event loop in this thread, which Django minds."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield chromium
        chromium.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def served(settings: Any, transactional_db: None, live_server: Any) -> str:
    """Build the scene behind a server, and return the server's address."""
    # Models can be imported only now: a folder named on the command line loads this file first.
    from tests.console import rows  # noqa: PLC0415
    from tests.e2e.scene import busy_morning  # noqa: PLC0415

    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    user = rows.member(busy_morning(), "operator", "n.okafor")
    user.set_password(PASSWORD)
    user.save()
    return str(live_server.url)


@pytest.fixture
def visit(browser: Browser, served: str) -> Iterator[Visit]:
    """Return the operator's signed-in browser; no page may have complained at the end."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
    )
    signed_in = Visit(context, served)
    signed_in.sign_in("n.okafor")
    yield signed_in
    context.close()
    assert signed_in.complaints == []
