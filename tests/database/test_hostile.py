"""Odd requests over a real socket: each gets its answer, and none is an error of ours."""

import gzip
import json
from collections.abc import Callable, Iterator

import pytest

from reliability.models import DeadLetter, ProcessedKey, Source
from tests.database import senders
from tests.database.live import Web, head, status
from tests.unit.test_signatures_vectors import read

pytestmark = pytest.mark.django_db(transaction=True)

Send = Callable[[Web, Source], int]
MEGABYTES = 8 * 1024 * 1024


@pytest.fixture(autouse=True)
def no_error_in_the_log(web: Web) -> Iterator[None]:
    yield
    web.assert_quiet()


@pytest.fixture
def source() -> Source:
    return senders.source("stripe")


def path(source: Source) -> str:
    return f"/hooks/{source.endpoint_token}/"


def signed(body: bytes, **more: str) -> Send:
    def send(web: Web, source: Source) -> int:
        return web.post(path(source), body, {**senders.sign("stripe", body), **more})

    return send


def raw(method: str = "POST", body: bytes = b"", **headers: str | bytes) -> Send:
    def send(web: Web, source: Source) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return status(web.send(head(method, path(source), body, named) + body))

    return send


def without_slash(web: Web, source: Source) -> int:
    body = b'{"id":"evt_1"}'
    return web.post(path(source).rstrip("/"), body, {**senders.sign("stripe", body)})


def underscored(web: Web, source: Source) -> int:
    body = b'{"id":"evt_1"}'
    [(_, value)] = senders.sign("stripe", body).items()
    return web.post(path(source), body, {"Stripe_Signature": value})


def endless(web: Web, source: Source) -> int:
    start = head(
        "POST", path(source), b"", {"Content-Length": "", "Transfer-Encoding": "chunked"}
    )
    return status(web.send(start, *[b"1000\r\n" + b"x" * 4096 + b"\r\n"] * 400))


ID = b'{"id":"evt_1","a":%s}'
# What the sender sends, the answer, and the letter's outcome ("" for a claim as any other: no
# handler is declared here, so that it is "unroutable"; None for nothing stored).
CASES: dict[str, tuple[Send, int, str | None]] = {
    "deep-100k": (signed(b"[" * 100_000 + b"]" * 100_000), 200, "unparseable"),
    "deep-1000": (signed(ID % (b"[" * 900 + b"]" * 900)), 200, "unparseable"),
    "nul-escape": (signed(ID % b'"x\\u0000y"'), 200, ""),
    "lone-surrogate": (signed(ID % b'"\\ud800"'), 200, "unparseable"),
    "nan": (signed(ID % b"NaN"), 200, "unparseable"),
    "1e400": (signed(ID % b"1e400"), 200, ""),
    "int-5000-digits": (signed(ID % (b"9" * 5_000)), 200, "unparseable"),
    "money-precision": (signed(ID % b"123456789012345.678901"), 200, ""),
    "dup-keys-id": (signed(b'{"id":"evt_A","id":"evt_B"}'), 200, "unparseable"),
    "invalid-utf8": (signed(ID % b'"\xff"'), 200, "unparseable"),
    "utf16": (signed('{"id":"evt_1"}'.encode("utf-16")), 200, "unparseable"),
    "trailing": (signed(b'{"id":"evt_1"}{"id":"evt_2"}'), 200, "unparseable"),
    "string-root": (signed(b'"evt_1"'), 200, "unparseable"),
    "id-null": (signed(b'{"id":null}'), 200, "unparseable"),
    "id-4000-chars": (signed(b'{"id":"%s"}' % (b"e" * 4_000)), 200, "unparseable"),
    "id-unicode-nfc": (signed('{"id":"evt_é"}'.encode()), 200, ""),
    "id-whitespace": (signed(b'{"id":" evt_1"}'), 200, ""),
    "empty": (signed(b""), 200, "unparseable"),
    "chunked-no-length": (endless, 411, None),
    "cl-te": (raw(body=b"0\r\n\r\n", Transfer_Encoding="chunked"), 400, None),
    "gzip-bomb": (
        signed(gzip.compress(bytes(10_000_000)), **{"Content-Encoding": "gzip"}), 415, None),
    "multipart": (
        signed(b'{"id":"evt_1"}', **{"Content-Type": "multipart/form-data; boundary=x"}), 200, ""),
    "no-slash": (without_slash, 200, ""),
    "get": (raw("GET"), 405, None),
    "head-options": (raw("OPTIONS"), 405, None),
    "underscore-header": (underscored, 401, None),
    "latin1-header": (raw(body=b"{}", Stripe_Signature=b"t=1,v1=\xe9"), 401, None),
    "kombu-type": (signed(ID % b'{"__type__":"datetime","__value__":"garbage"}'), 200, ""),
    "xss-key": (signed(b'{"id":"evt_1","<script>alert(1)</script>":1}'), 200, ""),
    "xss-type": (signed(b'{"id":"evt_1","type":"\\"><svg onload=alert(1)>"}'), 200, ""),
    "json-script": (signed(ID % b'"</script><script>alert(1)</script>"'), 200, ""),
    "tmpl": (signed(ID % b'"{{7*7}} {% debug %} ${7*7}"'), 200, ""),
    "ansi-log": (signed(b'{"id":"evt_1\\u001b[2J\\r\\nERROR fake line"}'), 200, "unparseable"),
    "slack-mrkdwn": (signed(ID % b'"<!channel> <https://evil.example|Sign in>"'), 200, ""),
    "csv-formula": (signed(b'{"id":"=HYPERLINK(\\"https://evil.example\\",\\"x\\")"}'), 200, ""),
    "crlf-header": (signed(b'{"id":"evt_1\\r\\nX-Evil: 1"}'), 200, "unparseable"),
    "big-string": (signed(ID % (b'"' + b"x" * 5_000_000 + b'"')), 413, None),
    "many-keys": (
        signed(json.dumps({f"k{n}": 1 for n in range(300_000)}).encode()), 413, None),
    "slowloris": (raw(body=b"{}", Stripe_Signature="t=1"), 401, None),
}  # fmt: skip


def test_each_hostile_request_gets_its_answer_and_its_letter(web: Web) -> None:
    got = {}
    for name, (send, _, _) in CASES.items():
        source = senders.source("stripe", slug=name)
        answer = send(web, source)
        letters = DeadLetter.objects.filter(source=source).values_list("outcome", flat=True)
        got[name] = (answer, list(letters), ProcessedKey.objects.filter(source=source).count())
    assert got == {
        name: (
            answer,
            [] if outcome is None else [outcome or "unroutable"],
            outcome is not None,
        )
        for name, (_, answer, outcome) in CASES.items()
    }


def test_every_published_hostile_request_is_among_them() -> None:
    assert {case["id"] for case in read("hostile.json")} <= set(CASES)


def test_any_other_method_is_405_without_cors(web: Web, source: Source) -> None:
    for method in ("HEAD", "PUT", "DELETE", "PATCH", "TRACE", "BREW"):
        answer = web.send(head(method, path(source), b"", {}))
        assert status(answer) == 405
        assert b"access-control" not in answer.lower()


def test_broken_http_is_the_servers_own_refusal(web: Web, source: Source) -> None:
    start = b"POST " + path(source).encode() + b" HTTP/1.1\r\nHost: localhost\r\n"
    end = b"Connection: close\r\n\r\n"
    cases = [
        (start + b"Content-Length: -1\r\n" + end, 400),
        (start + b"Content-Length: 1e3\r\n" + end, 400),
        (start + b"Content-Length: 2\r\nContent-Length: 3\r\n" + end + b"{}", 400),
        (start + b"Content-Length: 999999999999999\r\n" + end + b"{}", 413),
        (start.replace(b"/1.1", b"/9.9") + end, 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"POST\r\n\r\n", 400),
        (start + b"Bad Header: x\r\n" + end, 400),
        (start + b"X: y\r\n" * 500 + end, 431),
        (start + b"Transfer-Encoding: xchunked\r\n" + end, 501),
    ]
    assert [status(web.send(request)) for request, _ in cases] == [told for _, told in cases]
    assert ProcessedKey.objects.count() == 0


def test_a_foreign_host_name_is_400_whatever_the_signature(web: Web, source: Source) -> None:
    body = b'{"id":"evt_1"}'
    request = head("POST", path(source), body, {**senders.sign("stripe", body)}) + body
    assert status(web.send(request.replace(b"Host: localhost", b"Host: evil.example"))) == 400
    assert ProcessedKey.objects.count() == 0


def test_a_body_larger_than_djangos_own_limit_is_taken_in_by_a_source_that_allows_it(
    web: Web,
) -> None:
    source = senders.source("github")
    body = json.dumps({"a": "x" * 5_000_000}).encode()
    assert web.post(path(source), body, {**senders.sign("github", body)}) == 200
    assert DeadLetter.objects.get().outcome == "unroutable"


def test_too_many_values_in_a_body_of_allowed_size_are_a_letter(web: Web) -> None:
    source = senders.source("stripe", body_bytes_max=MEGABYTES)
    body = json.dumps({f"k{n}": 1 for n in range(300_000)}).encode()
    assert web.post(path(source), body, {**senders.sign("stripe", body)}) == 200
    letter = DeadLetter.objects.get()
    assert (letter.outcome, letter.reason) == ("unparseable", "too many values")


def test_two_ids_that_look_alike_are_two_keys(web: Web, source: Source) -> None:
    for key in ("evt_\\u00e9", "evt_e\\u0301", " evt_e\\u0301"):
        body = f'{{"id":"{key}"}}'.encode()
        assert web.post(path(source), body, {**senders.sign("stripe", body)}) == 200
    assert ProcessedKey.objects.count() == 3


def test_a_body_that_stops_short_is_400_and_nothing_is_stored(
    web: Web, source: Source
) -> None:
    body = b'{"id":"evt_1"}'
    request = head("POST", path(source), body, {**senders.sign("stripe", body)}) + body[:-3]
    answer = web.send(request, seconds=0.2)
    assert status(answer) in {0, 400}
    assert ProcessedKey.objects.count() == 0
