"""The engine's settings as a table: what is in force beside what is shipped."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from reliability.conf import Conf, conf
from reliability.console.parts import number
from reliability.work.limits import in_words

UNITS = {
    "percent": "%",
    "major": "major units",
    "_rate": "a second",
    "_rate_max": "a second",
}
SIZES = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))


@dataclass(frozen=True)
class Setting:
    """One setting; ``changed`` says that this deployment chose another value."""

    name: str
    value: str
    shipped: str

    @property
    def changed(self) -> bool:
        return self.value != self.shipped


def every_setting() -> Iterator[Setting]:
    """Yield the settings in the order of ``conf.py``."""
    shipped, used = Conf(), conf()
    for one in fields(Conf):
        yield Setting(
            one.name,
            _words(one.name, getattr(used, one.name)),
            _words(one.name, getattr(shipped, one.name)),
        )


def _words(name: str, value: Any) -> str:
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    match value:
        case timedelta():
            return in_words(value)
        case bool():
            return "yes" if value else "no"
        case int() if name.endswith("bytes_max"):
            return _size(value)
        case int() | float():
            written = number(value) if isinstance(value, int) else f"{value:g}"
            return f"{written} {unit}".rstrip()
        case _:
            told = [value] if isinstance(value, str) else value
            return ", ".join(map(str, told)) or "none"


def _size(many: int) -> str:
    """Write a whole number of KiB, MiB or GiB as such, anything else in bytes."""
    for unit, size in SIZES:
        if many % size == 0:
            return f"{number(many // size)} {unit}"
    return f"{number(many)} bytes"
