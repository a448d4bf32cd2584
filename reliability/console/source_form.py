"""A new source and its secret as a form says them."""

from django.http import QueryDict

from reliability.claim.intake import Intake
from reliability.claim.sources import Wanted, read_options
from reliability.console.filters import NotUnderstood
from reliability.models import Source
from reliability.models.acting import Refused

HELD = {"yes": True, "no": False}


def wanted(asked: QueryDict) -> Wanted:
    """Read the form of a new source; empty fields are left to the preset. Raises NotUnderstood."""
    try:
        options = read_options(filter(str.strip, asked.get("options", "").splitlines()))
    except ValueError as error:
        raise NotUnderstood(f"An option is name=value, not {str(error)[:60]!r}.") from None
    kinds = asked.get("statement_kinds", "").replace(",", " ").split()
    return Wanted(
        slug=asked.get("slug", "").strip(),
        preset=asked.get("preset", ""),
        mode=asked.get("mode", Source.Mode.LIVE),
        account=asked.get("account", "").strip()[:120],
        zone=asked.get("zone", "").strip() or None,
        statement_format=asked.get("statement_format") or None,
        statement_kinds=tuple(kinds),
        options=options,
    )


def wanted_intake(asked: QueryDict) -> Intake:
    """Read how events are to be taken in. Raises NotUnderstood for a word nobody offered."""
    answer, held = asked.get("answer", ""), asked.get("hold_replays", "")
    if answer not in Source.Answer.values or held not in HELD:
        raise NotUnderstood("The form does not say how events are to be taken in.")
    return Intake(answer=answer, hold_replays=HELD[held])


def given_secret(asked: QueryDict) -> str | Refused | None:
    """Return the secret that was entered, ``None`` to have one made; neither by accident."""
    secret = asked.get("secret", "")
    match asked.get("secret_from", "given"), bool(secret.strip()):
        case "made", False:
            return None
        case "made", True:
            return Refused("A secret was entered, but one was to be made here.")
        case _:
            return secret
