"""What a caller asks of the fake provider, and what goes back."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One POST; parameters are compared parsed, so their order and spacing do not matter."""

    path: str
    key: str
    parameters: Facts

    @property
    def fingerprint(self) -> str:
        return digest([json.dumps([self.path, self.parameters], sort_keys=True)])

    @property
    def operation(self) -> str:
        """The caller's name for what is done: `operation`, also below or as `metadata[…]`."""
        metadata = self.parameters.get("metadata")
        nested = metadata.get("operation") if isinstance(metadata, dict) else None
        flat = self.parameters.get("metadata[operation]")
        return str(self.parameters.get("operation") or flat or nested or "")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What goes back; on a dead line nothing does, although the request took effect."""

    status: int
    body: Facts
    replayed: bool = False
    dead_line: bool = False


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A request under way, or remembered under its key once it has an answer."""

    request: Request
    at: float
    answer: Answer | None = None


def read_parameters(body: bytes, content_type: str) -> Facts:
    """Read a form or JSON object; ValueError where it is neither."""
    if "json" not in content_type:
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError("the body is no JSON object")  # noqa: TRY004 - the caller's fault
    return value


def error(status: int, kind: str, message: str) -> Answer:
    """Answer as Stripe words its errors."""
    return Answer(status=status, body={"error": {"type": kind, "message": message}})


def digest(parts: Iterable[str]) -> str:
    """Hash texts as a bag: order does not matter, repeats do."""
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()
