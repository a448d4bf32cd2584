"""The invented people of the demo: who they are, how they act, and how long one waits for them."""

import time
from collections.abc import Callable
from typing import TypeVar

from django.contrib.auth import get_user_model

from reliability.management.stage import ask
from reliability.models import Tenant
from reliability.models.acting import Refused
from reliability.reconcile.discrepancies import Refusal
from reliability.work.dead_letters import Act, Moved

PEOPLE = (("admin", "admin"), ("amir", "approver"), ("olga", "operator"), ("vera", "viewer"))
LOOK_EVERY_SECONDS = 0.5
Done = TypeVar("Done")


class WentWrong(Exception):
    """Something that the demo's people do was refused: the demo is at fault."""


def people() -> list[dict[str, str]]:
    """Add a person of each role to both tenants; return their names, roles and passwords."""
    made = []
    for name, role in PEOPLE:
        first = ask("member", "add", name, "--tenant=acme", f"--role={role}")
        ask("member", "add", name, "--tenant=borealis", f"--role={role}")
        made.append({"user": name, "role": role, "password": first["password"]})
    return made


def by(name: str, tenant: Tenant, reason: str = "") -> Act:
    """Return how a person acts in a tenant, and why."""
    person = get_user_model().objects.get(username=name)
    return Act(tenant, name, person.pk, reason)


def kept(done: "Done | Refused | Refusal") -> "Done":
    """Return what a verb did. Raises ``WentWrong`` where it refused."""
    match done:
        case Refused() | Refusal():
            raise WentWrong(done.why)
        case Moved(refused=[first, *_]):
            raise WentWrong(first.why)
    return done


def wait(until: Callable[[], bool], *, seconds: float) -> bool:
    """Wait until something is so; ``False`` when it is not so in time."""
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_SECONDS)
    return True
