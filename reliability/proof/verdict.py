"""Whether what was found is what had to be found: pure, figure by figure, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One promise, what it needed and what there was."""

    promise: str
    expected: Any
    found: Any

    @property
    def ok(self) -> bool:
        return bool(self.expected == self.found)

    def facts(self) -> dict[str, Any]:
        """Return it as JSON can say it."""
        return asdict(self) | {"ok": self.ok}


def checks(expected: Facts, found: Facts) -> list[Check]:
    """Compare the counters and our tables with what the story told beforehand.

    `expected` is `figures` of a story, `found` is what `observe` saw. A delivery whose answer was
    lost is sent again, and what it had claimed is then answered as a duplicate: so many fewer
    may have been heard of as accepted, while exactly as many are claimed.
    """
    unheard = _unheard(expected, found)
    heard = {
        **found,
        "accepted": found["accepted"] + unheard,
        "duplicates": found["duplicates"] - unheard,
    }
    figures = [
        Check(f"{name} as told beforehand", expected[name], heard[name]) for name in expected
    ]
    return [*figures, *promises(found)]


def _unheard(expected: Facts, found: Facts) -> int:
    """Count claims whose answer was lost: at most one for each delivery that was sent again."""
    missing = int(expected.get("accepted", found["accepted"])) - int(found["accepted"])
    return max(0, min(missing, int(found["sent_again"])))


def promises(found: Facts) -> list[Check]:
    """Check what must hold whatever was sent."""
    conserved = found["conservation"]
    return [
        Check("each operation took effect once", found["effect_names"], found["effects"]),
        Check("no operation took effect twice", [], found["repeated_effects"]),
        Check("one downstream key an operation", [], found["effects_with_several_keys"]),
        Check("one raw request a run-once key", [], found["repeated_mails"]),
        Check(
            "accepted equals what its jobs are doing", conserved["accepted"], conserved["jobs"]
        ),
        Check("every event answered 2xx exists", [], found["lost"]),
        Check("no delivery was refused", 0, found["refused"]),
        Check("no job was left under way", 0, found["left"]),
    ]


def figures(told: Facts) -> dict[str, Any]:
    """Turn a story's expectation into the figures that are compared.

    Each local event leads to one follow-up job, and that to one mail.
    """
    local = told["local"]
    return {
        "sent": told["sent"],
        "accepted": told["accepted"],
        "duplicates": told["duplicates"],
        "claimed": told["accepted"],
        "absorbed": told["absorbed"],
        "conflicts": 0,
        "operations": told["operations"],
        "done": told["done"],
        "dead": {outcome: n for outcome, n in told["dead"].items() if n},
        "effects": told["effects"],
        "effects_by_path": dict(sorted(told["effects_by_path"].items())),
        "follow_ups": local,
        "follow_ups_done": local,
        "mails": told["mails"] + local,
    }


def same_state(digests: Sequence[str], *, control: str) -> list[Check]:
    """Check that every replay left the state that a run without faults leaves."""
    return [
        Check(f"replay {number}: the state of an unfaulted run", control, digest)
        for number, digest in enumerate(digests, 1)
    ]
