"""Read this deployment's environment variables; docs/deploy.md describes each."""

import base64
import binascii
import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from reliability.embedded.state import write_private

KNOWN = frozenset(
    f"RELIABILITY_{name}"
    for name in (
        "BASE_URL",
        "DATA",
        "FOLDER_LOGINS",
        "FOLDER_ROOT",
        "HANDLERS",
        "HEARTBEAT_URL",
        "KEY_RING",
        "KILL",
        "METRICS_TOKEN",
        "PACE",
        "PROCESS",
        "SINK",
        "TEST_DATABASE_URL",
    )
)
KEY_BYTES = 32
TRUTHS = {
    "": False,
    "0": False,
    "false": False,
    "no": False,
    "1": True,
    "true": True,
    "yes": True,
}


def refuse_unknown(environment: Mapping[str, str]) -> None:
    """Refuse a variable of our prefix that means nothing: most likely a misspelt one."""
    unknown = sorted(k for k in environment if k.startswith("RELIABILITY_") and k not in KNOWN)
    if unknown:
        raise ImproperlyConfigured(
            f"Unknown environment variable {', '.join(unknown)}; "
            f"known are {', '.join(sorted(KNOWN))}."
        )


def is_embedded(environment: Mapping[str, str]) -> bool:
    """Tell whether the embedded servers are meant: no address is given, rather than both."""
    given = [name for name in ("DATABASE_URL", "BROKER_URL") if environment.get(name)]
    if len(given) == 1:
        raise ImproperlyConfigured(
            f"Only {given[0]} is set: set DATABASE_URL and BROKER_URL, or neither."
        )
    return not given


def flag(environment: Mapping[str, str], name: str) -> bool:
    """Read a yes-or-no variable; unset means no."""
    value = environment.get(name, "").strip().lower()
    if value not in TRUTHS:
        raise ImproperlyConfigured(f"{name} must be true or false, not {value!r}.")
    return TRUTHS[value]


def words(environment: Mapping[str, str], name: str, *, default: str = "") -> list[str]:
    """Read a comma-separated variable."""
    return [word.strip() for word in environment.get(name, default).split(",") if word.strip()]


def key_ring(text: str) -> dict[str, bytes]:
    """Read `id:base64,id:base64`, newest first; each key is 32 bytes, for AES-256."""
    ring: dict[str, bytes] = {}
    for entry in (part.strip() for part in text.split(",") if part.strip()):
        key_id, _, encoded = entry.partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            key = b""
        if not key_id or len(key) != KEY_BYTES or key_id in ring:
            raise ImproperlyConfigured(
                f"RELIABILITY_KEY_RING: entry {key_id!r} must be a new id, a colon and "
                f"{KEY_BYTES} bytes in base64; make one with "
                "`python -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'`."
            )
        ring[key_id] = key
    return ring


def database(url: str) -> dict[str, Any]:
    """Turn `postgresql://user:password@host:port/name?option=value` into Django's dictionary."""
    parts = _split(url, "DATABASE_URL", schemes=("postgresql", "postgres"))
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ImproperlyConfigured("DATABASE_URL names no database after the host.")
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", "") or unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
    }


def broker(url: str) -> str:
    """Check the broker's address: Redis, Valkey or RabbitMQ."""
    _split(url, "BROKER_URL", schemes=("redis", "rediss", "amqp", "amqps"))
    return url


def email(url: str) -> dict[str, Any]:
    """Turn `smtp://user:password@host:port?tls=1` into Django's EMAIL_* settings.

    `tls=1` asks for STARTTLS, the scheme `smtps` for TLS from the first byte; no address prints
    mails to the log.
    """
    if not url:
        return {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    parts = _split(url, "EMAIL_URL", schemes=("smtp", "smtps"))
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname or "localhost",
        "EMAIL_PORT": parts.port or (465 if parts.scheme == "smtps" else 25),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": flag(dict(parse_qsl(parts.query)), "tls"),
        "EMAIL_TIMEOUT": 10,
    }


@dataclass(frozen=True)
class Secrets:
    """What an embedded deployment makes for itself, once."""

    secret_key: str
    key_ring: str


def embedded_secrets(folder: Path) -> Secrets:
    """Read the data folder's secrets, making them (0600) on the first call."""
    path = folder / "secrets.json"
    if not path.exists():
        key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        made = {"secret_key": secrets.token_urlsafe(48), "key_ring": f"k1:{key}"}
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        mine = folder / f"secrets.{os.getpid()}"
        write_private(mine, json.dumps(made))
        with contextlib.suppress(FileExistsError):  # another process was first: use its own
            os.link(mine, path)
        mine.unlink()
    try:
        return Secrets(**json.loads(path.read_text()))
    except (ValueError, TypeError):
        raise ImproperlyConfigured(f"{path} is damaged: restore it from a backup.") from None


def _split(url: str, name: str, *, schemes: tuple[str, ...]) -> Any:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as err:
        raise ImproperlyConfigured(f"{name} cannot be read: {err}.") from None
    if parts.scheme not in schemes:
        raise ImproperlyConfigured(f"{name} must begin with {' or '.join(schemes)} and ://.")
    return parts
