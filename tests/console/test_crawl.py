"""The crawler finds a number that is not the number of its rows, whatever the number counts."""

import pytest

from tests.console.crawl import Crawler

LISTS = {
    "/letters/": """<div id="table"><table><tbody>
        <tr><th>one</th><td data-label="Amount">€1\u202f018.40</td></tr>
        <tr><th>two</th><td data-label="Amount">−€3.00</td></tr></tbody></table></div>
        <nav id="pager"><a rel="next" href="?after=2">Next</a></nav>""",
    "/letters/?after=2": """<div id="table"><table><tbody>
        <tr><th>three</th><td data-label="Amount">480\u00a0JPY</td></tr></tbody></table></div>""",
    "/refused/": """<div id="table"><table><tbody>
        <tr><th>a</th><td data-label="Requests">7</td></tr>
        <tr><th>b</th><td data-label="Requests">2</td></tr></tbody></table></div>""",
    "/runs/": """<div id="table"><table><tbody>
        <tr><td>3 rescued, 1 rung</td></tr><tr><td>nothing</td></tr></tbody></table></div>""",
    "/report/": """<section><h2 id="differences">Two</h2><table><tbody>
        <tr><td>1</td></tr><tr><td>2</td></tr></tbody></table></section>""",
}


def wrong(link: str) -> list[str]:
    def get(path: str) -> tuple[int, str, str]:
        text = link if path == "/" else LISTS.get(path, "")
        return (200 if text else 404), "text/html", f"<html><body>{text}</body></html>"

    return Crawler(get).walk(["/"]).wrong


@pytest.mark.parametrize(
    "link",
    [
        '<a data-rows="3" href="/letters/">3 letters</a>',
        '<a data-rows="2+" href="/letters/">2+</a>',
        '<a data-rows="9" data-of="Requests" href="/refused/">9</a>',
        '<a data-rows="3" data-of="rescued" href="/runs/">3</a>',
        '<a data-rows="2" href="/report/#differences">2</a>',
        '<a data-rows data-of="sum" href="/letters/">€1\u202f018.40<br>480\u00a0JPY</a>',
        '<a data-rows data-of="refunds" href="/letters/">refunds €3.00</a>',
    ],
)
def test_a_number_that_its_rows_bear_out_is_no_complaint(link: str) -> None:
    assert wrong(link) == []


@pytest.mark.parametrize(
    "link",
    [
        '<a data-rows="2" href="/letters/">2 letters</a>',  # the first page alone
        '<a data-rows="3" href="/letters/">4 letters</a>',  # another number is to be read
        '<a data-rows="4+" href="/letters/">4+</a>',
        '<a data-rows="2" data-of="Requests" href="/refused/">2</a>',
        '<a data-rows="1" data-of="rescued" href="/runs/">1</a>',
        '<a data-rows="3" href="/report/#differences">3</a>',
        '<a data-rows="1" href="/nowhere/">1</a>',
        '<a data-rows data-of="sum" href="/letters/">€1\u202f018.40</a>',
        '<a data-rows data-of="sum" href="/letters/">€1\u202f018.39 480\u00a0JPY</a>',
        '<a data-rows data-of="refunds" href="/letters/">refunds €0.30</a>',
    ],
)
def test_a_number_that_its_rows_belie_is_named(link: str) -> None:
    assert len(wrong(link)) == 1
