"""Follow every number of the console to the rows behind it, and count them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit

from lxml import html

FACES_MAX = 3
"""Pages looked at of one route with the same filters: one letter's page is like another's."""
PAGES_MAX = 250
TRIES = 4
"""A number may move between two looks where workers run: the page is asked again."""
NUMBER = re.compile(r"\d[\d\u202f]*(?:\.\d+)?")
SIGNS = {"€": "EUR", "£": "GBP", "$": "USD"}
MONEY = re.compile(
    r"(−?)(?:([€£$])([\d\u202f]+(?:\.\d+)?)|([\d\u202f]+(?:\.\d+)?)\u00a0([A-Z]{3}))"
)
LEFT_OUT = re.compile(
    r"^/(in|hooks|api|admin|static|login|you/sign-out|metrics|healthz|readyz)\b"
)

Get = Callable[[str], tuple[int, str, str]]
"""Answers a path with status, content type and text."""
Money = dict[str, Decimal]


@dataclass(frozen=True)
class Number:
    """A number as a page shows it: the nth marked one, with what it says of its rows."""

    page: str
    nth: int
    href: str
    said: str
    of: str
    text: str

    @property
    def is_sum(self) -> bool:
        return self.of in {"sum", "refunds"}


@dataclass
class Crawled:
    """What was seen: paths by answer, numbers followed, and where a number and its rows disagree."""

    pages: dict[str, int] = field(default_factory=dict)
    numbers: int = 0
    wrong: list[str] = field(default_factory=list)


class Crawler:
    """Walks from page to page, each once, and from each number to its rows."""

    def __init__(self, get: Get, *, faces_max: int = FACES_MAX) -> None:
        self._get = get
        self._faces_max = faces_max
        self._faces: dict[Any, int] = {}
        self._checked: set[tuple[str, str, str]] = set()
        self.found = Crawled()

    def walk(self, starts: list[str]) -> Crawled:
        """Look at every page that can be reached from ``starts``, as often as its faces allow."""
        waiting = list(starts)
        while waiting:
            path = waiting.pop(0)
            if path in self.found.pages:
                continue
            status, kind, text = self._get(path)
            self.found.pages[path] = status
            if status != 200 or "html" not in kind:
                continue
            waiting += [link for link in _links(path, text) if self._is_new_face(link)]
            for number in _numbers(path, text):
                self._follow(number)
        return self.found

    def _is_new_face(self, path: str) -> bool:
        parts = urlsplit(path)
        route = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<id>", parts.path)
        face = (route, *sorted(name for name, _ in parse_qsl(parts.query)))
        self._faces[face] = self._faces.get(face, 0) + 1
        return self._faces[face] <= self._faces_max

    def _follow(self, number: Number) -> None:
        known = (number.href, number.said, number.of)
        if known in self._checked:
            return
        self._checked.add(known)
        self.found.numbers += 1
        counted = self._behind(number)
        for _ in range(TRIES):
            if _agree(number, counted):
                return
            text = self._get(number.page)[2]
            number = list(_numbers(number.page, text))[number.nth]
            counted = self._behind(number)
        self.found.wrong.append(
            f"{number.page} says {number.said} ({number.text}), but {number.href} has {counted}"
        )

    def _behind(self, number: Number) -> str:
        path, fragment = urldefrag(number.href)
        rows = [row for page in self._pages(path) for row in _rows(page, fragment)]
        if number.is_sum:
            return _written(_sums(rows)[number.of])
        if number.of:
            return str(sum(_part(row, number.of) for row in rows))
        return str(len(rows))

    def _pages(self, path: str) -> Iterator[Any]:
        for _ in range(PAGES_MAX):
            status, _, text = self._get(path)
            if status != 200:
                return
            page = html.fromstring(text)
            yield page
            after = page.xpath("//*[@id='pager']//a[@rel='next']/@href")
            if not after:
                return
            path = urljoin(path, str(after[0]))


def _agree(number: Number, counted: str) -> bool:
    if number.is_sum:
        return number.said == counted
    if number.said.endswith("+"):
        return int(counted) >= int(number.said[:-1])
    return number.said == counted and number.said in _plain(number.text)


def _links(path: str, text: str) -> Iterator[str]:
    for href in html.fromstring(text).xpath("//a/@href"):
        link, _ = urldefrag(urljoin(path, str(href)))
        if link.startswith("/") and not LEFT_OUT.match(link):
            yield link


def _numbers(path: str, text: str) -> Iterator[Number]:
    for nth, one in enumerate(html.fromstring(text).xpath("//*[@data-rows]")):
        said, of = str(one.get("data-rows")), str(one.get("data-of") or "")
        words = "\n".join(str(text) for text in one.itertext())
        if of in {"sum", "refunds"}:
            said = _written(
                _money(words if of == "refunds" else words.partition("refunds")[0])
            )
        yield Number(
            path, nth, urljoin(path, one.get("href") or _whole(path)), said, of, words
        )


def _whole(path: str) -> str:
    """Return a list's address from its first page on: a total is of all its pages."""
    parts = urlsplit(path)
    asked = [(name, value) for name, value in parse_qsl(parts.query) if name != "after"]
    return f"{parts.path}?{urlencode(asked)}"


def _rows(page: Any, fragment: str) -> list[Any]:
    """Return the rows of the part that a fragment names, or of the section it heads."""
    part = page.xpath("//*[@id=$id]", id=fragment or "table")
    found: list[Any] = part[0].xpath(".//tbody/tr") if part else []
    if part and fragment and not found:
        found = part[0].xpath("ancestor::section[1]//tbody/tr")
    return found


def _part(row: Any, of: str) -> int:
    """Return what one row is worth: its cell under a heading, or the number before a word."""
    cells = row.xpath(".//td[@data-label=$of]", of=of)
    if cells:
        return int(_plain(cells[0].text_content()).strip())
    said = re.search(rf"(\d+) {re.escape(of)}", _plain(row.text_content()))
    return int(said[1]) if said else 0


def _sums(rows: list[Any]) -> dict[str, Money]:
    came: Money = {}
    back: Money = {}
    for row in rows:
        cells = row.xpath(".//td[@data-label='Amount' or @data-label='Theirs']")
        for currency, amount in _money(str(cells[0].text_content())).items() if cells else ():
            told = back if amount < 0 else came
            told[currency] = told.get(currency, Decimal()) + abs(amount)
    return {"sum": came, "refunds": back}


def _money(text: str) -> Money:
    """Read amounts as people do, sharing no code with what wrote them."""
    found: Money = {}
    for minus, sign, short, long, code in MONEY.findall(text):
        amount = Decimal(_plain(short or long))
        currency = SIGNS.get(sign, code)
        found[currency] = found.get(currency, Decimal()) + (-amount if minus else amount)
    return found


def _written(money: Money) -> str:
    return " ".join(
        f"{amount} {currency}" for currency, amount in sorted(money.items()) if amount
    )


def _plain(text: str) -> str:
    return text.replace("\u202f", "")
