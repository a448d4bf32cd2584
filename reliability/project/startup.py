"""What refuses to start: a deployment on real addresses must not run with a toy's settings."""

from collections.abc import Iterable, Mapping

from django.core.checks import Error
from django.core.exceptions import ImproperlyConfigured

SECRET_KEY_LENGTH_MIN = 50
SECRET_KEY_DISTINCT_MIN = 5  # as django.core.checks.security
MAKE_ONE = "`python -c 'import secrets; print(secrets.token_urlsafe(48))'`"


def problems(
    *, secret_key: str, hosts: Iterable[str], key_ring: Mapping[str, bytes], pace: str
) -> list[Error]:
    """Return why a deployment outside DEBUG and the embedded servers may not start."""
    found = []
    weak = (
        len(secret_key) < SECRET_KEY_LENGTH_MIN
        or len(set(secret_key)) < SECRET_KEY_DISTINCT_MIN
        or secret_key.startswith("django-insecure-")
    )
    if weak:
        why = f"SECRET_KEY is missing or weak: set {SECRET_KEY_LENGTH_MIN} random characters"
        found.append(Error(f"{why}, made with {MAKE_ONE}.", id="reliability.E020"))
    if "*" in hosts:
        why = "ALLOWED_HOSTS holds '*': name the hosts this deployment answers to."
        found.append(Error(why, id="reliability.E021"))
    if not key_ring:
        why = "RELIABILITY_KEY_RING is missing: set id:key, 32 random bytes in base64."
        found.append(Error(why, id="reliability.E022"))
    if pace != "shipped":
        why = f"RELIABILITY_PACE={pace} is for embedded servers only: unset it."
        found.append(Error(why, id="reliability.E023"))
    return found


def refuse(found: Iterable[Error]) -> None:
    """Raise one line for the first problem, if there is one."""
    for error in found:
        raise ImproperlyConfigured(f"{error.id}: {error.msg}")
