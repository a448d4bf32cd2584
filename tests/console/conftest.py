"""What every console test stands on."""

from pathlib import Path

import pytest
from django.conf import settings


@pytest.fixture(autouse=True, scope="session")
def _static_root() -> None:
    """Give whitenoise the folder that collectstatic would have made."""
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
