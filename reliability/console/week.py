"""Seven days of dead letters: what came, what left, what stood open. Geometry only, no markup."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate

from reliability.console.access import OperatorRequest, for_tenant
from reliability.models import DeadLetter

DAYS = 7
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 780, 240, 44, 26, 28
BASE = HEIGHT - BOTTOM
STEP = (WIDTH - LEFT) / DAYS


@dataclass(frozen=True)
class Day:
    """One day, by UTC: ``open`` is how many letters stood open at its end, or now."""

    day: date
    came: int
    left: int
    open: int


@dataclass(frozen=True)
class Bar:
    """One day as drawn."""

    day: Day
    x: float
    left_x: float
    middle: float
    came_y: float
    left_y: float
    open_y: float
    width: float

    @property
    def came_height(self) -> float:
        return round(BASE - self.came_y, 1)

    @property
    def left_height(self) -> float:
        return round(BASE - self.left_y, 1)


@dataclass(frozen=True)
class Chart:
    """Everything the SVG template needs; text stays text."""

    bars: list[Bar]
    grid: list[tuple[float, int]]
    high: tuple[float, int] | None
    low: tuple[float, int] | None

    @property
    def line(self) -> str:
        """The points of the line through what stood open."""
        return " ".join(f"{bar.middle},{bar.open_y}" for bar in self.bars)

    @property
    def now(self) -> Bar:
        return self.bars[-1]


def week(request: OperatorRequest, open_now: int) -> list[Day]:
    """Count the last seven days, oldest first; today is not over."""
    today = request.now.astimezone(UTC).date()
    days = [today - timedelta(days=n) for n in reversed(range(DAYS))]
    since = datetime.combine(days[0], datetime.min.time(), UTC)
    letters = for_tenant(request, DeadLetter.objects.all())
    came = _per_day(letters.filter(buried_at__gte=since), "buried_at")
    left = _per_day(letters.filter(closed_at__gte=since), "closed_at")
    return _standing(days, came, left, open_now)


def _per_day(letters: "QuerySet[DeadLetter]", moment: str) -> dict[date, int]:
    days = letters.order_by().values_list(TruncDate(moment, tzinfo=UTC))
    return dict(days.annotate(Count("pk")))


def _standing(
    days: list[date], came: Mapping[date, int], left: Mapping[date, int], open_now: int
) -> list[Day]:
    standing, told = open_now, []
    for day in reversed(days):
        told.append(Day(day, came.get(day, 0), left.get(day, 0), max(standing, 0)))
        standing -= came.get(day, 0) - left.get(day, 0)
    return told[::-1]


def chart(days: list[Day], *, high: int | None = None, low: int | None = None) -> Chart:
    """Lay the week out; ``high`` and ``low`` are the marks an alert opens and closes at."""
    top = max([1, *(max(d.came, d.left, d.open) for d in days), high or 0])

    def y(value: int) -> float:
        return round(BASE - (BASE - TOP) * value / top, 1)

    return Chart(
        bars=[
            _bar(n, day, y(day.came), y(day.left), y(day.open)) for n, day in enumerate(days)
        ],
        grid=[(y(value), value) for value in sorted({0, top // 2, top})],
        high=(y(high), high) if high else None,
        low=(y(low), low) if low else None,
    )


def _bar(n: int, day: Day, *ys: float) -> Bar:
    width = round(STEP * 0.24, 1)
    x = round(LEFT + n * STEP + STEP * 0.2, 1)
    came_y, left_y, open_y = ys
    return Bar(
        day=day, x=x, left_x=round(x + width + 4, 1), middle=round(x + width + 2, 1),
        came_y=came_y, left_y=left_y, open_y=open_y, width=width,
    )  # fmt: skip
