"""What every console test stands on, and whom most of them ask for."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

if TYPE_CHECKING:
    from django.test import Client

    from reliability.models import Source, Tenant


@pytest.fixture(autouse=True, scope="session")
def _static_root() -> None:
    """Give whitenoise the folder that collectstatic would have made."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)


@pytest.fixture
def acme() -> "Tenant":
    from tests.console import rows  # noqa: PLC0415 - needs the settings

    return rows.tenant()


@pytest.fixture
def stripe(acme: "Tenant") -> "Source":
    from tests.console import rows  # noqa: PLC0415 - likewise

    return rows.source(acme)


@pytest.fixture
def viewer(acme: "Tenant") -> "Client":
    """Return the browser of a signed-in member who may only look."""
    from tests.console import rows  # noqa: PLC0415 - likewise

    return rows.signed_in(rows.member(acme, "viewer"))


@pytest.fixture
def operator(acme: "Tenant") -> "Client":
    """Return the browser of a signed-in member who may act."""
    from tests.console import rows  # noqa: PLC0415 - likewise

    return rows.signed_in(rows.member(acme, "operator"))
