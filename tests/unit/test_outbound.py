"""A request goes to a public address that was judged, or nowhere."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from reliability.errors import AddressRefused, NoAnswer
from reliability.outbound import Guard, Request, check, send
from reliability.outbound.addresses import networks

STRICT = Guard()
LOOPBACK = Guard(allowed=networks(["127.0.0.0/8"]))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def resolving(*addresses: str) -> Callable[[str, int], Sequence[Any]]:
    def resolve(_host: str, port: int) -> Sequence[Any]:
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    return resolve


@contextmanager
def server(*answers: bytes, pause: float = 0.0) -> Iterator[tuple[int, list[bytes]]]:
    """Serve the pieces of one answer to every connection; yield the port and what came in."""
    listening = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                heard.append(client.recv(65_536))
                try:
                    for piece in answers:
                        client.sendall(piece)
                        time.sleep(pause)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1], heard
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def get(url: str, **more: Any) -> Request:
    return Request(method="GET", url=url, **more)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255",
        "192.168.1.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16",
        "192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
        "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::1", "::", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "fe80::1",
        "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "64:ff9b::7f00:1",
        "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1",
        "5f00::1", "4000::1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused_at_save_and_at_send(address: str) -> None:
    rules = replace(STRICT, resolve=resolving(address))
    with pytest.raises(AddressRefused):
        check("https://shop.example/hook", rules)
    with pytest.raises(AddressRefused):
        send(get("https://shop.example/hook"), rules)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111"])
def test_a_public_address_passes(address: str) -> None:
    check("https://shop.example/hook", replace(STRICT, resolve=resolving(address)))


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    rules = replace(STRICT, resolve=resolving("8.8.8.8", "127.0.0.1"))
    with pytest.raises(AddressRefused, match="not public"):
        check("https://shop.example/", rules)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://shop.example/", "file:///etc/passwd", "gopher://shop.example/", "//shop.example/",
        "shop.example", "https://", "https:///path", "https://user@shop.example/",
        "https://user:word@shop.example/", "https://shop.example:22/", "https://shop.example:0/",
        "https://shop.example:99999/", "https://shop.example:8443/", "http://shop.example/",
        "https://shop.example\\@127.0.0.1/", "https://shop.example/a b", "https://shop.example/\r\nX:1",
        "https://shop.example/\t", "https://[::1/", "https://shöp.example/",
        "https://shop.example/" + "a" * 2_000,
    ],
)  # fmt: skip
def test_an_odd_url_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        check(url, replace(STRICT, resolve=resolving("8.8.8.8")))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "localhost"]
)
def test_loopback_however_it_is_written_is_refused(host: str) -> None:
    with pytest.raises((AddressRefused, NoAnswer)):
        check(f"https://{host}/")


def test_a_name_that_turns_private_between_save_and_send_is_refused_at_send() -> None:
    answers = iter(["8.8.8.8", "127.0.0.1"])

    def rebinding(_host: str, port: int) -> Sequence[Any]:
        return [(0, 0, 0, "", (next(answers), port))]

    rules = replace(STRICT, resolve=rebinding)
    check("https://shop.example/", rules)
    with pytest.raises(AddressRefused):
        send(get("https://shop.example/"), rules)


def test_the_connection_goes_to_the_address_that_was_judged_and_nobody_is_asked_again() -> (
    None
):
    asked = []

    def once(host: str, port: int) -> Sequence[Any]:
        asked.append(host)
        return [(0, 0, 0, "", ("127.0.0.1", port))]

    with server(OK) as (port, heard):
        answer = send(
            get(f"http://shop.example:{port}/a?b=c"), replace(LOOPBACK, resolve=once)
        )
    assert (answer.status, answer.body, answer.cut) == (200, b"ok", False)
    assert asked == ["shop.example"]
    assert heard[0].startswith(
        f"GET /a?b=c HTTP/1.1\r\nHost: shop.example:{port}\r\n".encode()
    )


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    moved = (
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    )
    with server(moved) as (port, heard):
        answer = send(get(f"http://127.0.0.1:{port}/"), LOOPBACK)
    assert (answer.status, len(heard)) == (302, 1)


def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with server(OK) as (port, _):
        assert send(get(f"http://127.0.0.1:{port}/"), LOOPBACK).status == 200


def test_of_a_long_answer_the_first_64_kilobytes_are_kept() -> None:
    body = b"x" * 200_000
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"
    with server(head + body) as (port, _):
        answer = send(get(f"http://127.0.0.1:{port}/"), LOOPBACK)
    assert (len(answer.body), answer.cut) == (65_536, True)


def test_a_head_that_dribbles_is_given_up_on_at_the_deadline() -> None:
    with server(*[b"H"] * 50, pause=0.02) as (port, _):
        began = time.monotonic()
        with pytest.raises(NoAnswer, match="out of time"):
            send(get(f"http://127.0.0.1:{port}/", time=timedelta(seconds=0.2)), LOOPBACK)
        assert time.monotonic() - began < 1


def test_a_body_that_dribbles_is_cut_at_the_deadline_and_its_status_stands() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"
    with server(head, *[b"x"] * 50, pause=0.02) as (port, _):
        request = get(f"http://127.0.0.1:{port}/", time=timedelta(seconds=0.2))
        answer = send(request, LOOPBACK)
    assert (answer.status, answer.cut) == (200, True)


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 20"])
def test_an_answer_that_is_not_http_is_no_answer(answer: bytes) -> None:
    with server(answer) as (port, _), pytest.raises(NoAnswer):
        send(get(f"http://127.0.0.1:{port}/"), LOOPBACK)


def test_a_closed_port_and_an_unknown_name_are_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NoAnswer):
        send(get(f"http://127.0.0.1:{port}/"), LOOPBACK)

    def unknown(_host: str, _port: int) -> Sequence[Any]:
        raise socket.gaierror

    with pytest.raises(NoAnswer, match="does not resolve"):
        send(get("https://nowhere.example/"), replace(STRICT, resolve=unknown))


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb"])
def test_a_header_cannot_smuggle_another(value: str) -> None:
    with server(OK) as (port, heard), pytest.raises(ValueError, match="Invalid header"):
        send(get(f"http://127.0.0.1:{port}/", headers={"X-Note": value}), LOOPBACK)
    assert heard in ([], [b""])


def test_tls_names_the_host_of_the_url_and_refuses_another_certificate(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path, "shop.example")
    named: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    with tls_server(context) as port:
        rules = replace(
            LOOPBACK, resolve=resolving("127.0.0.1"),
            tls=ssl.create_default_context(cafile=str(certificate)),
        )  # fmt: skip
        assert send(get(f"https://shop.example:{port}/"), rules).status == 200
        with pytest.raises(NoAnswer, match="SSLCertVerificationError"):
            send(get(f"https://other.example:{port}/"), rules)
    assert named == ["shop.example", "other.example"]


@contextmanager
def tls_server(context: ssl.SSLContext) -> Iterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for _ in range(2):
            client, _address = listening.accept()
            try:
                with context.wrap_socket(client, server_side=True) as secure:
                    secure.recv(65_536)
                    secure.sendall(OK)
            except OSError:
                continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    thread.join()
    listening.close()


def self_signed(folder: Path, host: str) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name)
        .public_key(key.public_key()).serial_number(1)
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "certificate.pem"
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, form, plain))
    return path
