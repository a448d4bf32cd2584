"""An address inside is refused when a destination is saved, and again when an event is sent."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from reliability.models import DeadLetter, Destination, Job
from reliability.outbound import Guard
from reliability.outbound import client as outbound_client
from reliability.outbound.signing import new_secret
from tests.database import senders, world

pytestmark = pytest.mark.django_db

URLS = {
    "private": "https://10.1.2.3/",
    "private, shared with carriers": "https://100.64.0.1/",
    "loopback": "https://127.0.0.1/",
    "loopback in other digits": "https://2130706433/",
    "loopback by name": "https://localhost/",
    "loopback, IPv6": "https://[::1]/",
    "loopback inside IPv6": "https://[::ffff:127.0.0.1]/",
    "loopback, IPv4-compatible": "https://[::127.0.0.1]/",
    "link-local": "https://169.254.1.1/",
    "link-local, IPv6": "https://[fe80::1]/",
    "site-local": "https://[fec0::1]/",
    "unique local": "https://[fd00:ec2::254]/",
    "metadata": "https://169.254.169.254/latest/meta-data/",
    "wire server": "https://168.63.129.16/",
    "NAT64": "https://[64:ff9b::7f00:1]/",
    "NAT64, local": "https://[64:ff9b:1::a00:1]/",
    "6to4": "https://[2002:7f00:1::]/",
    "multicast": "https://224.0.0.1/",
    "nowhere": "https://0.0.0.0/",
    "userinfo": "https://shop.example@10.1.2.3/",
    "userinfo before a public host": "https://a:b@93.184.216.34/",
    "odd port": "https://93.184.216.34:6379/",
    "plain http": "http://93.184.216.34/",
    "another scheme": "gopher://93.184.216.34/",
}


@pytest.mark.parametrize("name", URLS)
def test_a_destination_inside_cannot_be_saved(name: str) -> None:
    world.tenant()
    with pytest.raises(CommandError):
        call_command(
            "destination", "add", "shop", "--url", URLS[name], "--tenant", "acme",
            stdout=StringIO(),
        )  # fmt: skip
    assert Destination.objects.count() == 0


def deliver_to(url: str) -> None:
    at = Destination(tenant=world.tenant(), slug="shop", url=url)
    at.seal(new_secret())
    at.save()
    source = senders.source("stripe", destination=at)
    body = b'{"id":"evt_1","type":"t"}'
    signed = senders.sign("stripe", body)
    path = f"/hooks/{source.endpoint_token}/"
    assert Client().post(path, body, "application/json", headers=signed).status_code == 200


@pytest.mark.parametrize("name", URLS)
def test_an_event_is_not_sent_inside_whatever_was_saved(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.create_connection", unreachable)
    deliver_to(URLS[name])
    world.work_outside()
    assert "may not be asked" in DeadLetter.objects.get().message


def unreachable(*_: Any, **__: Any) -> Any:
    raise AssertionError("a connection was made")


def test_a_name_that_turned_to_the_metadata_address_after_it_was_saved_is_a_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["93.184.216.34", "169.254.169.254"])

    def rebinding(_host: str, port: int) -> Any:
        return [(0, 0, 0, "", (next(answers), port))]

    monkeypatch.setattr(outbound_client, "guard", lambda: Guard(resolve=rebinding))
    monkeypatch.setattr("socket.create_connection", unreachable)
    outbound_client.check("https://shop.example/")
    deliver_to("https://shop.example/")
    world.work_outside()
    assert Job.objects.get().state == "dead"
    assert "not public" in DeadLetter.objects.get().message
