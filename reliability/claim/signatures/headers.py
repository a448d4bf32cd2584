"""Looks headers up as a careful receiver does: any case, never two answers."""

from collections.abc import Mapping

from reliability.claim.signatures.verdicts import CONFLICTING, MISSING, Refused


def header(headers: Mapping[str, str], *names: str) -> str | Refused:
    """Return the one value sent under any of the names, whatever their case.

    Names are alternatives (``webhook-id``, ``svix-id``): both may be there if they agree.
    An underscore is not a hyphen.
    """
    wanted = {name.lower() for name in names}
    found = [
        (name.lower(), value) for name, value in headers.items() if name.lower() in wanted
    ]
    if not found:
        return Refused(MISSING)
    if len({value for _, value in found}) > 1 or len({name for name, _ in found}) < len(found):
        return Refused(CONFLICTING)
    return found[0][1]
