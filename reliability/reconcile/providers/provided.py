"""What a provider can be asked, and what it answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from reliability.claim.backlog import Recorded
from reliability.models import Source


class CannotFetch(Exception):
    """The provider could not be asked, or said no; the text tells a person why."""


class RateLimited(CannotFetch):
    """The provider takes no more requests for now."""


@dataclass(frozen=True)
class Fetched:
    """The object as the provider has it now."""

    content: Mapping[str, Any]


@dataclass(frozen=True)
class Gone:
    """The provider no longer has it: the statement's line has to do."""

    why: str


class ListEvents(Protocol):
    """Yields the events of a span as they would be delivered. Raises ``CannotFetch``."""

    def __call__(
        self, source: Source, since: datetime, until: datetime
    ) -> Iterator[Recorded]: ...


class FetchObject(Protocol):
    """Returns the object of one operation. Raises ``CannotFetch``."""

    def __call__(
        self, source: Source, operation_class: str, reference: str
    ) -> Fetched | Gone: ...
