"""Which files of a folder are statements, and of which day, by their names alone."""

import re
from datetime import date
from functools import cache

DAY = "{day}"
SHAPES = r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8})"
PATTERN_CHARACTERS_MAX = 200
WILD = {"*": "[^/]*", "?": "[^/]"}
UNFINISHED = (".part", ".partial", ".filepart", ".tmp", ".crdownload")


def pattern_error(pattern: str) -> str:
    """Say what is wrong with a pattern, or nothing.

    It is a glob of ``*`` and ``?`` over one name, with ``{day}`` exactly once: ``2026-10-14``
    or ``20261014``. A file that does not say its day cannot be compared with one.
    """
    if pattern.count(DAY) != 1:
        return "the pattern needs {day} once, as in settlement_{day}*.csv"
    if "/" in pattern or "\\" in pattern or len(pattern) > PATTERN_CHARACTERS_MAX:
        return "the pattern is over one file name: no folders, 200 characters at most"
    return ""


def day_of_name(pattern: str, name: str) -> date | None:
    """Return the day a name tells, or ``None`` for a file that is none of ours.

    Hidden files and the usual names of uploads that still run are nobody's.
    """
    if name.startswith(".") or name.lower().endswith(UNFINISHED):
        return None
    found = _compiled(pattern).fullmatch(name)
    try:
        return date.fromisoformat(found["day"]) if found else None
    except ValueError:
        return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    before, _, after = pattern.partition(DAY)
    return re.compile(f"{_glob(before)}{SHAPES}{_glob(after)}")


def _glob(text: str) -> str:
    return "".join(WILD.get(one) or re.escape(one) for one in text)
