"""The embedded servers start, stop and clean up after accidents."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from reliability.embedded import binaries
from reliability.embedded.account import server_account
from reliability.embedded.errors import AlreadyRunning, EmbeddedUnavailable
from reliability.embedded.processes import Process, identify, is_running
from reliability.embedded.servers import Servers
from reliability.embedded.state import read_state

ROOT = Path(__file__).resolve().parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from reliability.embedded.servers import Servers
print(Servers(Path(sys.argv[1]), durable=False).start().database_url, flush=True)
time.sleep(60)
"""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Servers of a folder whose path is longer than a socket's may be."""
    servers = Servers(tmp_path / ("long" * 40), durable=False)
    yield servers
    servers.remove()


def ask(url: str) -> object:
    with psycopg.connect(url) as database:
        row = database.execute("SELECT current_user").fetchone()
    return row and row[0]


def test_the_application_role_is_no_superuser(servers: Servers) -> None:
    with psycopg.connect(servers.start().database_url) as database:
        row = database.execute(
            "SELECT current_setting('is_superuser'), current_user"
        ).fetchone()

    assert row == ("off", "reliability")


def test_fresh_servers_have_forgotten_what_their_folder_stored(tmp_path: Path) -> None:
    for fresh, known in ((False, 0), (False, 1), (True, 0)):
        servers = Servers(tmp_path / "data", durable=False, fresh=fresh)
        with psycopg.connect(servers.start().database_url) as database:
            asked = database.execute("SELECT count(*) FROM pg_tables WHERE tablename = 't'")
            assert asked.fetchone() == (known,)
            database.execute("CREATE TABLE IF NOT EXISTS t ()")
        servers.stop()
    Servers(tmp_path / "data").remove()


def test_the_servers_start_below_a_path_too_long_for_a_socket(servers: Servers) -> None:
    addresses = servers.start()

    assert len(str(servers.folder)) > 108
    assert ask(addresses.database_url) == "reliability"
    assert redis.Redis.from_url(addresses.broker_url).ping()
    assert servers.running() == addresses


def test_the_state_with_its_passwords_is_readable_by_its_owner_only(servers: Servers) -> None:
    servers.start()

    assert stat.S_IMODE((servers.folder / "state.json").stat().st_mode) == 0o600


def test_neither_server_accepts_a_wrong_password(servers: Servers) -> None:
    addresses = servers.start()
    passwords = read_state(servers.folder).passwords

    with pytest.raises(psycopg.OperationalError):
        ask(addresses.database_url.replace(passwords["reliability"], "wrong"))
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis.from_url(addresses.broker_url.replace(passwords["valkey"], "wrong")).ping()


def test_a_second_start_is_told_and_the_first_is_not_touched(servers: Servers) -> None:
    addresses = servers.start()

    with pytest.raises(AlreadyRunning):
        Servers(servers.folder).start()

    assert ask(addresses.database_url) == "reliability"


def test_stopped_servers_are_gone_and_start_again_with_their_data(servers: Servers) -> None:
    first = servers.start()
    with psycopg.connect(first.database_url) as database:
        database.execute("CREATE TABLE kept ()")
    processes = read_state(servers.folder).processes
    servers.stop()

    assert not any(is_running(process) for process in processes.values())
    assert servers.running() is None
    again = servers.start()
    assert again == first
    with psycopg.connect(again.database_url) as database:
        database.execute("SELECT FROM kept")


def test_a_pid_file_naming_an_unrelated_process_is_ignored_and_that_process_lives(
    servers: Servers,
) -> None:
    servers.start()
    servers.stop()
    stranger = subprocess.Popen(["/bin/sleep", "60"], **servers.account.popen())
    pid_file = Path(read_state(servers.folder).home) / "postgres" / "postmaster.pid"
    pid_file.write_text(f"{stranger.pid}\n{pid_file.parent}\n1700000000\n5432\n\n\n")

    try:
        assert ask(servers.start().database_url) == "reliability"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_what_a_killed_parent_left_running_is_ended_by_the_next_start(
    servers: Servers,
) -> None:
    command = [sys.executable, "-c", HOLDER, str(servers.folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        parent.stdout.readline()
        left = read_state(servers.folder).processes
        parent.send_signal(signal.SIGKILL)
    assert all(is_running(process) for process in left.values())

    began = time.monotonic()
    addresses = servers.start()

    assert time.monotonic() - began < 15
    assert not any(is_running(process) for process in left.values())
    assert ask(addresses.database_url) == "reliability"


def test_a_server_that_died_is_mended_on_its_port(servers: Servers) -> None:
    addresses = servers.start()
    os.kill(read_state(servers.folder).processes["postgres"].pid, signal.SIGKILL)
    servers._children["postgres"].wait()

    servers.mend()

    assert ask(addresses.database_url) == "reliability"


def test_a_process_with_a_reused_number_is_not_the_one_that_was_named() -> None:
    ours = identify(os.getpid())

    assert is_running(ours)
    assert not is_running(Process(os.getpid(), "another boot:1"))


def test_a_damaged_state_file_reads_as_a_folder_never_used(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"ports": {}})[:-1])

    assert read_state(tmp_path).home == ""


def test_a_platform_without_the_wheel_is_told_in_one_line() -> None:
    with pytest.raises(EmbeddedUnavailable, match="set DATABASE_URL and BROKER_URL") as told:
        binaries._package_folder("no_such_wheel")

    assert "\n" not in str(told.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the servers as somebody else")
def test_programs_the_account_cannot_reach_are_copied_to_where_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "hidden_wheel"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "bin" / "program").write_text("#!/bin/sh\n")
    (package / "bin" / "program").chmod(0o755)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(binaries, "version", lambda _name: "1.0")
    account = server_account()
    assert not account.can_run(package / "bin" / "program")

    found = binaries._reachable("hidden_wheel", "bin/program", account=account)

    try:
        assert account.can_run(found)
        assert found.read_text() == "#!/bin/sh\n"
    finally:
        shutil.rmtree(found.parents[3])
