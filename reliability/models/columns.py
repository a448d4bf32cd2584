"""Columns that many tables share, so that each is spelled once."""

import uuid
from typing import Any

from django.contrib.postgres.functions import RandomUUID
from django.db import models


def public_id() -> "models.UUIDField[uuid.UUID, uuid.UUID]":
    """Return the id that stands in URLs; the bigint stays inside."""
    return models.UUIDField(
        default=uuid.uuid4, db_default=RandomUUID(), unique=True, editable=False
    )


def tenant(**options: Any) -> "models.ForeignKey[Any, Any]":
    """Return the tenant of a row that also names its source.

    Hot tables carry the number without a constraint of its own: their source row guarantees it,
    and each constraint costs a look-up per insert.
    """
    return models.ForeignKey(
        "reliability.Tenant", on_delete=models.PROTECT, related_name="+", **options
    )


def key_text(**options: Any) -> "models.TextField[str, str]":
    """Return an opaque key column: compared byte by byte, never folded or trimmed."""
    return models.TextField(db_collation="C", **options)
