"""Make, start and prepare the embedded PostgreSQL."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from reliability.embedded.binaries import Binaries
from reliability.embedded.errors import EmbeddedUnavailable
from reliability.embedded.place import Place, Server, plain_environment, wait_until_ready
from reliability.embedded.processes import began_at, end, identify

# Fast shutdown, then immediate; both keep what was committed.
STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGQUIT)
SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    # TCP only: a socket folder would have to be short-pathed and shared between accounts.
    "unix_socket_directories": "",
    "max_connections": "120",
    "shared_buffers": "64MB",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
    "timezone": "UTC",
}
NOT_DURABLE: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
# A postmaster.pid gives whole seconds, the system's clock may have been set a little since.
START_TOLERANCE_SECONDS: Final = 5
OLD_BACKENDS_SECONDS: Final = 10


def launch(place: Place, binaries: Binaries, remember: Callable[[Server], None]) -> None:
    """Start PostgreSQL, making its data and the application's role and database if need be.

    `remember` is told the program before anything waits for it, so that a kill of ours in
    between leaves nothing unnamed.
    """
    data = place.home / "postgres"
    if not (data / "PG_VERSION").exists():
        _make_data(place, data, initdb=binaries.initdb)
    judge_pid_file(data)
    settings = SETTINGS | ({} if place.durable else NOT_DURABLE)
    settings["port"] = str(place.ports["postgres"])
    options = [f"--{name}={value}" for name, value in settings.items()]
    command: list[str | Path] = [binaries.postgres, "-D", data, *options]
    deadline = time.monotonic() + OLD_BACKENDS_SECONDS
    while not _started(place, command, remember):
        if time.monotonic() > deadline:
            raise EmbeddedUnavailable("Processes of an earlier PostgreSQL do not end.")
        time.sleep(0.1)
    _make_database(place)


def _started(
    place: Place, command: Sequence[str | Path], remember: Callable[[Server], None]
) -> bool:
    """Start it; false when it must wait for the backends of a postmaster that was killed."""
    server = place.spawn("postgres", command)
    remember(server)
    try:
        wait_until_ready(server, lambda: _answers(place), place=place, name="postgres")
    except EmbeddedUnavailable:
        if "shared memory block" in place.last_words("postgres", lines=3):
            return False
        raise
    return True


def judge_pid_file(data: Path) -> None:
    """End the server a left-over pid file names; let PostgreSQL judge the file itself.

    PostgreSQL refuses to start when the number has gone to an unrelated process of the same
    account. The file must stay even so, for it names the shared memory by which backends of a
    killed postmaster are noticed; so it is made to name us, PostgreSQL's parent, which it ignores.
    """
    path = data / "postmaster.pid"
    try:
        lines = path.read_text().splitlines()
        pid, began = int(lines[0]), int(lines[2])
    except (OSError, ValueError, IndexError):
        return
    process, alive_since = identify(pid), began_at(pid)
    if process is None or alive_since is None:
        return
    if abs(alive_since - began) <= START_TOLERANCE_SECONDS:
        end([process], *STOP_SIGNALS, seconds=4)
    else:
        path.write_text("\n".join([str(os.getpid()), *lines[1:], ""]))


def _make_data(place: Place, data: Path, *, initdb: Path) -> None:
    shutil.rmtree(data, ignore_errors=True)  # cut off half-way: it has no PG_VERSION
    password_file = place.home / "password"
    password_file.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(password_file, flags, 0o600), "w") as file:
        file.write(place.passwords["postgres"])
    place.account.own(password_file)
    options = ["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8"]
    options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    options += [f"--pwfile={password_file}", *([] if place.durable else ["--no-sync"])]
    try:
        done = subprocess.run(  # noqa: S603 - our own program and arguments
            [initdb, "-D", data, *options],
            cwd=place.home,
            env=plain_environment(),
            capture_output=True,
            text=True,
            check=False,
            **place.account.popen(),
        )
    finally:
        password_file.unlink()
    if done.returncode:
        raise EmbeddedUnavailable(f"initdb failed: {done.stderr.strip().splitlines()[-1]}")


def _connect(place: Place) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(
        host="127.0.0.1",
        port=place.ports["postgres"],
        user="postgres",
        password=place.passwords["postgres"],
        dbname="postgres",
        connect_timeout=5,
        autocommit=True,
    )


def _answers(place: Place) -> bool:
    try:
        _connect(place).close()
    except psycopg.OperationalError:
        return False
    return True


def _make_database(place: Place) -> None:
    role = sql.SQL("ROLE reliability LOGIN NOSUPERUSER CREATEDB PASSWORD {}").format(
        place.passwords["reliability"]
    )
    with contextlib.closing(_connect(place)) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reliability'").rowcount:
            connection.execute(sql.SQL("ALTER ") + role)
        else:
            connection.execute(sql.SQL("CREATE ") + role)
        known = "SELECT 1 FROM pg_database WHERE datname = 'reliability'"
        if not connection.execute(known).rowcount:
            connection.execute("CREATE DATABASE reliability OWNER reliability")
