"""A proof told to a person: what struck when, how often where, every figure, and the verdict."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Facts = dict[str, Any]
BETWEEN = "between effect and completion"
IDLE = "at random: no job ran there"
ROWS_MAX = 24
"""Seconds are gathered until no more rows than these are drawn."""
BAR_MAX = 40
WIDTHS = (8, 7, 10, 24, 24)


def by_point(kills: Sequence[Facts]) -> dict[str, int]:
    """Count kills by where they ended a process: at a named point, or where its job was."""
    return dict(Counter(map(_place, kills)).most_common())


def by_second(kills: Sequence[Facts]) -> dict[int, int]:
    """Count kills by the whole second of the run in which they were done, in order."""
    return dict(sorted(Counter(int(kill.get("second", 0)) for kill in kills).items()))


def _place(kill: Facts) -> str:
    if point := kill.get("point"):
        return str(point)
    places = {job["where"] for job in kill["hit"]}
    if not places:
        return IDLE
    return f"at random: {BETWEEN if BETWEEN in places else min(places)}"


def table(kills: Sequence[Facts], faults: Sequence[Facts]) -> list[str]:
    """Write a line for each kill and fault, in the order of the run."""
    if not kills and not faults:
        return []
    rows = [_kill_row(kill) for kill in kills] + [_fault_row(fault) for fault in faults]
    ordered = sorted(rows, key=lambda row: float(row[0]))
    head = ("second", "replay", "delivery", "what", "where", "hit")
    return [_line(head), *map(_line, ordered)]


def plot(title: str, counts: Mapping[Any, int]) -> list[str]:
    """Draw counts as bars of plain text, the longest 40 characters."""
    if not counts:
        return []
    longest = max(counts.values())
    width = max(len(str(name)) for name in counts)
    return ["", title] + [
        f"{name!s:>{width}}  {_bar(count, longest)}{count}" for name, count in counts.items()
    ]


def _bar(count: int, longest: int) -> str:
    return "#" * max(round(count * BAR_MAX / longest), 1) + " " if count else ""


def seconds_plot(counts: Mapping[int, int]) -> list[str]:
    """Draw the kills along the run, several seconds to a row where it was long."""
    if not counts:
        return []
    step = 1
    while max(counts) // step >= ROWS_MAX:
        step += 1
    rows = dict.fromkeys(range(0, max(counts) + 1, step), 0)
    for second, count in counts.items():
        rows[second // step * step] += count
    return plot(f"kills by second of the run ({step} s a row)", rows)


def figure_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """Write each figure in a line of its own; digests say nothing to a person."""
    for name, value in figures.items():
        if name != "digest":
            yield f"{name.replace('_', ' '):<32}{_plain(value)}"


def _kill_row(kill: Facts) -> tuple[str, ...]:
    planned = kill["kill"]
    missed = f"at random: nobody reached {planned['point']}"
    where = kill["point"] or (
        missed if planned["point"] else f"at random ({planned['moment']})"
    )
    return (*_when(kill, planned), kill["target"], where, _hits(kill["hit"]))


def _fault_row(fault: Facts) -> tuple[str, ...]:
    planned = fault["strike"]
    hit = (
        f"{fault['did'] or 'nothing'}, {_hits(fault['hit'])}" if fault["hit"] else fault["did"]
    )
    return (*_when(fault, planned), f"fault {planned['fault']}", "", hit)


def _when(done: Facts, planned: Facts) -> tuple[str, str, str]:
    return f"{done['second']:.1f}", str(planned["replay"] + 1), str(planned["after"])


def _line(row: Sequence[str]) -> str:
    first = [f"{cell:<{width}}" for cell, width in zip(row, WIDTHS, strict=False)]
    return " ".join([*first, row[-1]]).rstrip()


def _hits(hit: Sequence[Mapping[str, str]]) -> str:
    if not hit:
        return "no running job"
    by_where = Counter(job["where"] for job in hit)
    return ", ".join(f"{n} running {where}" for where, n in by_where.items())


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {n}" for name, n in value.items()) or "none"
    return str(value) if value != [] else "none"
