"""The engine's settings as a table: what is in force beside what is shipped."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from reliability.conf import Conf, conf
from reliability.work.limits import in_words

UNITS = {"bytes_max": "bytes", "percent": "%", "major": "major units", "rate": "a second"}


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
    match value:
        case timedelta():
            return in_words(value)
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(str(one) for one in value) or "none"
        case _:
            unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
            return f"{value} {unit}".rstrip()
