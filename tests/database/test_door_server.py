"""The door behind the deployment's own server, and as a view that another project mounts."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, connection, connections
from django.test import Client

from reliability.claim import together, webhook
from reliability.models import Delivery, ProcessedKey, Source
from tests.database import senders
from tests.database.live import Web, head, status

pytestmark = pytest.mark.django_db(transaction=True)

BODY = b'{"id":"evt_1","type":"charge.succeeded"}'
# The path after which the token comes and what follows it; the answer of server and view alike.
PATHS = {
    "/hooks/{}/": 200,
    "/hooks/{}": 200,
    "/hooks/{}/?a=b": 200,
    "/hooks/{}//": 404,
    "/hooks/{}/more": 404,
    "/hooks/{}/more/": 404,
    "/hooks/x{}/": 404,
    "/hooks/": 404,
    "/hooks": 404,
    "/HOOKS/{}/": 404,
    "/hooks/%00/": 404,
    "/hooks/{}%00/": 404,
    "/hooks/{}%0A/": 404,
    "/hooks/%FF%FE/": 404,
    "/hooks/%E2%82%AC/": 404,
    "/hooks/%2E%2E/": 404,
    "/hooks/{}%2Fmore": 404,
    "/hooks/{}%2F": 200,
    "/hooks/" + "x" * 3_000 + "/": 404,
}
# What Django's request cannot be made of, as any sender may write it.
CONTENT_TYPES = [
    "application/json; charset*=utf-8''%00",
    "application/json; charset*=bogus''%FF",
    "application/json; charset*=idna''%FF",
    "application/json; charset=nobody-knows",
    ";;;=",
]


@pytest.fixture
def source() -> Source:
    return senders.source("stripe")


def environ(path: str, body: bytes = BODY, **more: Any) -> dict[str, Any]:
    signed = senders.sign("stripe", body)["Stripe-Signature"]
    return {
        "REQUEST_METHOD": "POST", "PATH_INFO": path, "SERVER_NAME": "localhost",
        "SERVER_PORT": "80", "HTTP_HOST": "localhost", "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http", "HTTP_STRIPE_SIGNATURE": signed,
    } | more  # fmt: skip


def serve(asked: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """Ask the server's own entry, in this process."""
    from reliability.project.wsgi import application  # noqa: PLC0415 - needs the settings

    told: list[Any] = []
    body = b"".join(application(asked, lambda line, headers: told.extend([line, headers])))
    return int(told[0].split()[0]), dict(told[1]), body


def address(source: Source) -> str:
    return f"/hooks/{source.endpoint_token}/"


@pytest.mark.parametrize("path", PATHS)
def test_a_path_leads_to_the_door_or_nowhere_by_server_and_view_alike(
    path: str, web: Web, source: Source
) -> None:
    signed = senders.sign("stripe", BODY)
    asked = path.format(source.endpoint_token)
    assert web.post(asked, BODY, {**signed}) == PATHS[path]
    assert web.post(asked, BODY, {**signed}) == PATHS[path]
    web.assert_quiet()
    if "%2F" not in path:  # a test client asks for such a path in another way
        answer = Client().post(asked, BODY, "application/json", headers=signed)
        assert answer.status_code == PATHS[path]


@pytest.mark.parametrize("form", ["//hooks/{}/", "/./hooks/{}/", "http://localhost/hooks/{}/",
                                  "/hooks/\xff/", "/hooks/{}/#part", "*"])  # fmt: skip
def test_an_odd_request_target_gets_an_answer_of_the_table(
    form: str, web: Web, source: Source
) -> None:
    target = form.format(source.endpoint_token).encode("latin-1")
    start = head("POST", "@", BODY, {**senders.sign("stripe", BODY)}).replace(b"@", target, 1)
    assert status(web.send(start + BODY)) in {200, 400, 404}
    web.assert_quiet()


@pytest.mark.parametrize("content_type", CONTENT_TYPES)
def test_a_content_type_nobody_can_parse_does_not_keep_an_authentic_event_out(
    content_type: str, web: Web, source: Source
) -> None:
    signed = senders.sign("stripe", BODY)
    answer = web.post(address(source), BODY, {**signed, "Content-Type": content_type})
    assert (answer, ProcessedKey.objects.count()) == (200, 1)
    web.assert_quiet()


def test_a_prefix_the_server_is_mounted_under_is_not_part_of_the_path(source: Source) -> None:
    answer, _, _ = serve(environ(address(source), SCRIPT_NAME="/reliability"))
    assert answer == 200


def test_the_answer_to_a_head_has_no_body_and_the_next_request_is_understood(
    web: Web, source: Source
) -> None:
    path = address(source)
    first = head("HEAD", path, b"", {}).replace(b"Connection: close\r\n", b"")
    second = head("POST", path, BODY, {**senders.sign("stripe", BODY)}) + BODY
    heard = web.send(first + second)
    refused, _, rest = heard.partition(b"\r\n\r\n")
    assert (status(refused), status(rest)) == (405, 200)
    assert b"no-body response" not in web.log.read_bytes()


@pytest.mark.parametrize(("path", "refused"), [("/hooks/nobody/", 404), ("", 415), ("", 413)])
def test_a_body_that_was_refused_unread_is_not_taken_for_the_next_request(
    path: str, refused: int, web: Web, source: Source
) -> None:
    smuggled = head("POST", address(source), BODY, {**senders.sign("stripe", BODY)}) + BODY
    more = {"Content-Encoding": "gzip"} if refused == 415 else {}
    filler = b" " * (1_048_577 if refused == 413 else 1)
    body = smuggled + filler
    first = head("POST", path or address(source), body, {**more})
    last = head("GET", address(source), b"", {})
    heard = web.send(first.replace(b"Connection: close\r\n", b"") + body, last)
    assert status(heard) == refused
    assert heard.count(b"HTTP/1.1 ") <= 2
    assert ProcessedKey.objects.count() == 0


@pytest.mark.parametrize("host", ["", "evil.example", "localhost:80:80", "local host", "[::1"])
def test_a_host_that_is_not_ours_is_400_before_anything_is_looked_up(
    host: str, source: Source
) -> None:
    more: dict[str, Any] = (
        {"HTTP_HOST": host} if host else {"HTTP_HOST": "", "SERVER_NAME": "evil.example"}
    )
    answer, _, _ = serve(environ(address(source), **more))
    assert (answer, ProcessedKey.objects.count()) == (400, 0)


def test_the_doors_answers_carry_the_headers_every_page_carries(source: Source) -> None:
    for asked, expected in ((environ(address(source)), 200), (environ("/hooks/nobody/"), 404)):
        answer, headers, body = serve(asked)
        assert (answer, headers["Content-Length"]) == (expected, str(len(body)))
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    "error",
    [RuntimeError("no"), InterfaceError("gone"), RequestDataTooBig("big"), KeyError(1)],
)
def test_whatever_goes_wrong_is_503_and_never_500_by_server_and_view_alike(
    error: Exception, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(webhook, "identities", fail)
    answer, headers, _ = serve(environ(address(source)))
    assert (answer, headers["Retry-After"]) == (503, "5")
    signed = senders.sign("stripe", BODY)
    seen = Client().post(address(source), BODY, "application/json", headers=signed)
    assert (seen.status_code, seen["Retry-After"]) == (503, "5")


@pytest.fixture
def short_lived() -> Iterator[None]:
    """Have the connection go back after a request, as the web program's does to its pool."""
    connection.ensure_connection()
    connection.close_at = 0.0
    yield
    connection.close()


@pytest.mark.parametrize("broken", [False, True])
def test_after_each_request_the_connection_goes_back(
    broken: bool,  # noqa: FBT001 - the parameter
    source: Source,
    short_lived: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if broken:
        monkeypatch.setattr(webhook, "_receive", lambda *_: 1 / 0)
    with caplog.at_level(logging.CRITICAL):
        serve(environ(address(source)))
    assert connection.connection is None


def test_a_project_of_atomic_requests_answers_only_what_it_has_committed(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[bool] = []
    claim = together.claim_together

    def watched(*args: Any, **more: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return claim(*args, **more)

    monkeypatch.setattr(webhook, "claim_together", watched)
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", 1)
    signed = senders.sign("stripe", BODY)
    answer = Client().post(address(source), BODY, "application/json", headers=signed)
    assert (json.loads(answer.content)["status"], inside) == ("accepted", [False])
    assert Delivery.objects.count() == 1


def test_no_payload_no_header_and_no_secret_stands_in_the_servers_log(
    web: Web, source: Source
) -> None:
    personal = "canary-3f9a@example.com"
    bodies = (
        f'{{"id":"evt_1","email":"{personal}"}}',
        f'{{"id": 1, "email": {personal}',
        f'{{"id":"evt_\\u001b[2J{personal}"}}',
    )
    for body in bodies:
        raw = body.encode()
        signed = senders.sign("stripe", raw)
        assert web.post(address(source), raw, {**signed, "Cookie": f"a={personal}"}) == 200
        forged = {"Stripe-Signature": f"t=1,v1={personal}", "X-Note": personal}
        assert web.post(address(source), raw, {**forged}) == 401
    said = web.log.read_text()
    assert personal not in said
    assert senders.SECRETS["stripe"] not in said
    assert "\x1b" not in said
