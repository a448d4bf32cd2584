"""What a provider answers when it is asked for one object."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class CannotFetch(Exception):
    """The provider could not be asked, or said no; the text tells a person why."""


@dataclass(frozen=True)
class Fetched:
    """The object as the provider has it now."""

    content: Mapping[str, Any]


@dataclass(frozen=True)
class Gone:
    """The provider no longer has it: the statement's line has to do."""

    why: str
