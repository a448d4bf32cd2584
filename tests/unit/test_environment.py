"""This deployment's environment variables are read exactly or refused in one line."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from reliability.project import environment as env
from reliability.project import startup

ROOT = Path(__file__).resolve().parents[2]
# base64 of 32 zero bytes, as `head -c 32 /dev/zero | base64` prints it.
ZEROS = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
STRONG = "k3J-9sQ_x7Lw2Zr8Vb5Nc1Mt6Yp4Hd0Gf-aSeRuIoPqWzXvBnMlK"
ADDRESSES = {
    "DATABASE_URL": "postgresql://u:p@127.0.0.1:1/none",
    "BROKER_URL": "redis://127.0.0.1:1/0",
    "SECRET_KEY": STRONG,
    "RELIABILITY_KEY_RING": f"k1:{ZEROS}",
}


def run(*command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    ours = ("RELIABILITY_", "DATABASE_URL", "BROKER_URL", "SECRET_KEY", "DJANGO_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=clean | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def assert_one_line(done: "subprocess.CompletedProcess[str]", *needles: str) -> None:
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1, done.stderr
    for needle in needles:
        assert needle in done.stderr


def test_an_unknown_setting_is_refused_in_one_line_naming_it() -> None:
    done = run("migrate", RELIABILITY_LEASES="3")

    assert_one_line(done, "RELIABILITY_LEASES", "RELIABILITY_DATA")


def test_a_weak_secret_key_on_real_addresses_is_refused_in_one_line() -> None:
    assert_one_line(run("migrate", **ADDRESSES | {"SECRET_KEY": "short"}), "SECRET_KEY")


def test_an_unreachable_database_is_told_in_one_line_naming_it() -> None:
    done = run("migrate", "--skip-checks", **ADDRESSES)

    assert_one_line(done, "127.0.0.1:1/none", "DATABASE_URL")


def test_a_command_without_servers_says_how_to_start_them(tmp_path: Path) -> None:
    done = run("migrate", "--skip-checks", RELIABILITY_DATA=str(tmp_path / "data"))

    assert_one_line(done, "No database is running", "make up")


def test_embedded_secrets_are_made_once_and_readable_by_their_owner_only(
    tmp_path: Path,
) -> None:
    made = env.embedded_secrets(tmp_path)

    assert env.embedded_secrets(tmp_path) == made
    assert stat.S_IMODE((tmp_path / "secrets.json").stat().st_mode) == 0o600
    assert len(made.secret_key) >= 50
    assert [len(key) for key in env.key_ring(made.key_ring).values()] == [32]
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.json"]


def test_a_key_ring_keeps_its_order_newest_first() -> None:
    ring = env.key_ring(f"new:{ZEROS}, old:{ZEROS}")

    assert list(ring) == ["new", "old"]
    assert ring["new"] == bytes(32)


@pytest.mark.parametrize(
    "text", ["k1", "k1:", ":" + ZEROS, "k1:AAAA", "k1:*", f"k1:{ZEROS},k1:{ZEROS}"]
)
def test_a_key_ring_that_could_not_decrypt_is_refused_without_showing_keys(text: str) -> None:
    with pytest.raises(ImproperlyConfigured) as told:
        env.key_ring(text)

    assert ZEROS not in str(told.value)


def test_a_database_address_is_taken_apart() -> None:
    read = env.database("postgresql://ann:p%40ss@db.example:6432/ledger?sslmode=require")

    assert read == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "ledger",
        "USER": "ann",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "6432",
        "OPTIONS": {"sslmode": "require"},
    }


@pytest.mark.parametrize(
    "url",
    ["mysql://h/n", "postgresql://h", "postgresql://h:port/n", "postgresql://[::/n", "n"],
)
def test_a_database_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        env.database(url)


def test_a_broker_that_celery_does_not_know_is_refused() -> None:
    assert env.broker("amqp://h//") == "amqp://h//"
    with pytest.raises(ImproperlyConfigured, match="BROKER_URL"):
        env.broker("kafka://h")


@pytest.mark.parametrize("name", ["DATABASE_URL", "BROKER_URL"])
def test_one_address_without_the_other_is_refused(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        env.is_embedded({name: "x"})


def test_the_servers_are_embedded_only_when_no_address_is_given() -> None:
    assert env.is_embedded({})
    assert not env.is_embedded({"DATABASE_URL": "x", "BROKER_URL": "y"})


def test_a_mail_address_asks_for_starttls_and_bounds_its_wait() -> None:
    read = env.email("smtp://u:p@mail.example:587?tls=1")

    assert read["EMAIL_HOST"] == "mail.example"
    assert read["EMAIL_PORT"] == 587
    assert read["EMAIL_USE_TLS"] is True
    assert read["EMAIL_USE_SSL"] is False
    assert read["EMAIL_TIMEOUT"] == 10


def test_a_yes_or_no_that_is_neither_is_refused() -> None:
    assert env.flag({"DEBUG": "True"}, "DEBUG")
    with pytest.raises(ImproperlyConfigured, match="DEBUG"):
        env.flag({"DEBUG": "perhaps"}, "DEBUG")


GOOD = {
    "secret_key": STRONG,
    "hosts": ["a.example"],
    "key_ring": {"k": b""},
    "pace": "shipped",
}


def test_a_strong_deployment_may_start() -> None:
    assert startup.problems(**GOOD) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"secret_key": STRONG[:49]}, "reliability.E020"),
        ({"secret_key": "abcd" * 20}, "reliability.E020"),
        ({"secret_key": "django-insecure-" + STRONG}, "reliability.E020"),
        ({"hosts": ["a.example", "*"]}, "reliability.E021"),
        ({"key_ring": {}}, "reliability.E022"),
        ({"pace": "quick"}, "reliability.E023"),
    ],
)
def test_each_toy_setting_refuses_to_start(change: dict[str, object], check: str) -> None:
    found = startup.problems(**GOOD | change)  # type: ignore[arg-type]

    assert [error.id for error in found] == [check]
    with pytest.raises(ImproperlyConfigured, match=check):
        startup.refuse(found)
