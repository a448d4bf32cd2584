"""Ten whole months of three sources: what was planted in them is found, nothing else, and cleared.

    python -m benchmarks.months [--months 10] [--operations 20000] [--big 200000] [--seed 1]
                                [--folder planted] [--json]

Each month is invented from its seed, what is wrong with it is written down first, and it is lived
through day by day on throw-away servers of its own; ``--big`` is the size of the last one. Ends with 1
where anything was found that had not been planted, or the other way round.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from reliability.embedded.servers import throwaway

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    asked = _parser().parse_args()
    if asked.one is not None:
        _live_one(asked)
        return
    asked.folder = asked.folder or Path(tempfile.mkdtemp(prefix="months-"))
    asked.folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for number in range(asked.months):
        outcomes.append(_apart(asked, number))
        if not asked.json:
            print(_words(outcomes[-1]), flush=True)
    good = all(one["ok"] for one in outcomes)
    if asked.json:
        print(json.dumps({"ok": good, "seed": asked.seed, "months": outcomes}, indent=1))
    sys.exit(0 if good else 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.months")
    parser.add_argument("--months", type=int, default=10)
    parser.add_argument("--operations", type=int, default=20_000, help="of a month (20000)")
    parser.add_argument("--big", type=int, default=200_000, help="of the last month (200000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep what was planted here")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", type=int, help="(inside) live through this month only")
    return parser


def _apart(asked: argparse.Namespace, number: int) -> dict[str, Any]:
    """Live through one month in a process and on servers of its own."""
    last = number == asked.months - 1
    with throwaway(durable=False) as addresses:
        environment = os.environ | {
            "RELIABILITY_DATA": str(addresses.folder),
            "DJANGO_SETTINGS_MODULE": "reliability.project.settings",
            "PYTHONPATH": str(ROOT),
        }
        for name in ("DATABASE_URL", "BROKER_URL"):
            environment.pop(name, None)
        ended = subprocess.run(
            [
                sys.executable, "-m", "benchmarks.months", f"--one={number}", f"--seed={asked.seed}",
                f"--operations={asked.big if last else asked.operations}",
                f"--folder={asked.folder.resolve()}",
            ],
            env=environment, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _live_one(asked: argparse.Namespace) -> None:
    """Invent, write down, live; everything here needs the settings, so it is imported here."""
    import django  # noqa: PLC0415
    from django.core.management import call_command  # noqa: PLC0415

    django.setup()
    call_command("migrate", verbosity=0)
    from tests.proof import feed, lived, months  # noqa: PLC0415

    first = months.FIRSTS[asked.one % len(months.FIRSTS)]
    # The month's last day has only what slips into it.
    per_day = -(-asked.operations // (len(months.ACCOUNTS) * 27))
    month = months.invent(asked.seed + asked.one, first, per_day=per_day, big_day=5 * per_day)
    months.write_planted(month, asked.folder / f"planted-{asked.one}.json")
    with feed.handled():
        outcome = lived.live(month)
    print(json.dumps({"month": asked.one, "seed": asked.seed + asked.one} | outcome.facts()))


def _words(outcome: dict[str, Any]) -> str:
    wrong = "".join(f"\n  {sentence}" for sentence in outcome["wrong"])
    return (
        "{first}: {operations} operations, {planted} planted, {found} found, {false_alarms} false "
        "alarms, {days_agreed} looks agreed, {open_at_the_end} open at the end, {seconds} s"
    ).format(**outcome) + wrong


if __name__ == "__main__":
    main()
