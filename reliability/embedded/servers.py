"""Start, inspect and stop a real PostgreSQL and a real Valkey that belong to one data folder."""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reliability.embedded import postgres, valkey
from reliability.embedded.account import Account, reachable_folder, server_account
from reliability.embedded.binaries import Binaries, find_binaries
from reliability.embedded.hold import Hold
from reliability.embedded.place import Place, Server, free_port, named
from reliability.embedded.processes import end, is_running
from reliability.embedded.state import State, read_state, write_state
from reliability.killing import THROWAWAY

NAMES: Final = ("postgres", "valkey")
_MODULES: Final = {"postgres": postgres, "valkey": valkey}


@dataclass(frozen=True)
class Addresses:
    """Where the two servers answer, passwords included: not for logs."""

    database_url: str
    broker_url: str
    folder: Path
    """The data folder: with RELIABILITY_DATA set to it, every command uses these servers."""


class Servers:
    """The two servers of one data folder; at most one process holds a folder at a time."""

    def __init__(self, folder: Path, *, durable: bool = True, fresh: bool = False) -> None:
        """With `fresh`, `start` removes what servers of this folder stored before."""
        self.folder = folder.absolute()
        self.durable = durable
        self.fresh = fresh
        self.account: Account = server_account()
        self._binaries: Binaries | None = None
        self._hold = Hold(self.folder)
        self._children: dict[str, Server] = {}

    def start(self) -> Addresses:
        """Start both servers, first ending whatever a killed predecessor left running.

        Raises `AlreadyRunning` while another process holds the folder, and
        `EmbeddedUnavailable` with one line where the servers cannot run.
        """
        self._hold.take()
        try:
            self._binaries = find_binaries(self.account)
            self._prepare()
            for name in NAMES:
                self.resume(name)
        except BaseException:
            self.stop()
            raise
        return _addresses(self.folder)

    def stop(self) -> None:
        """End both servers and let go of the folder; harmless when they do not run."""
        if not self._hold.taken:
            return
        for name in reversed(NAMES):
            self.halt(name)
        self._hold.release()

    def remove(self) -> None:
        """End both servers and remove the folder with all they stored."""
        self.stop()
        if home := read_state(self.folder).home:
            shutil.rmtree(home)
            if Path(home).parent != self.folder:
                with suppress(OSError):  # not empty: somebody else's servers live there too
                    Path(home).parent.rmdir()
        shutil.rmtree(self.folder, ignore_errors=True)

    def running(self) -> Addresses | None:
        """Return the addresses when both servers run, whoever started them."""
        return running_addresses(self.folder)

    def mend(self) -> None:
        """Start again whichever server has died since `start`."""
        processes = read_state(self.folder).processes
        for name in NAMES:
            if not is_running(processes.get(name)):
                self.resume(name)

    def halt(self, name: str) -> None:
        """End one server ("postgres" or "valkey") and keep its port for `resume`."""
        state = read_state(self.folder)
        process = state.processes.get(name)
        if process is not None:
            end([process], *_MODULES[name].STOP_SIGNALS, seconds=4)
            if child := self._children.pop(name, None):
                child.wait()
            write_state(self.folder, state.with_process(name, None))

    def resume(self, name: str) -> None:
        """Start one server on the port it has; needs a `start` before."""
        state = read_state(self.folder)
        binaries = self._binaries or find_binaries(self.account)

        def remember(server: Server) -> None:
            self._children[name] = server
            write_state(self.folder, state.with_process(name, named(server)))

        _MODULES[name].launch(self._place(state), binaries, remember)

    def _prepare(self) -> None:
        state = read_state(self.folder)
        if self.fresh and state.home:
            shutil.rmtree(state.home, ignore_errors=True)
        state = replace(
            state,
            home=state.home if Path(state.home or "-").is_dir() else str(self._choose_home()),
            ports={name: free_port(state.ports.get(name, 0)) for name in NAMES},
            passwords={
                name: state.passwords.get(name) or secrets.token_urlsafe(24)
                for name in ("postgres", "reliability", "valkey")
            },
            processes={},
            url=None,
        )
        write_state(self.folder, state)

    def _choose_home(self) -> Path:
        outer = self.folder
        if not self.account.can_enter(outer):
            outer = reachable_folder(self.folder, account=self.account)
        # A new name each time: servers of a data folder that was deleted are not adopted.
        home = Path(tempfile.mkdtemp(prefix="servers-", dir=outer))
        self.account.own(home)
        return home

    def _place(self, state: State) -> Place:
        return Place(
            home=Path(state.home),
            log=self.folder / "log",
            account=self.account,
            ports=state.ports,
            passwords=state.passwords,
            durable=self.durable,
        )


def running_addresses(folder: Path) -> Addresses | None:
    """Return where the folder's servers answer, or `None` unless both run."""
    folder = folder.absolute()
    state = read_state(folder)
    if all(is_running(state.processes.get(name)) for name in NAMES):
        return _addresses(folder)
    return None


@contextmanager
def throwaway(*, durable: bool = True) -> Iterator[Addresses]:
    """Run both servers in a fresh temporary folder; end and remove them at exit.

    With `durable=False` PostgreSQL does not wait for the disk: for tests that measure nothing.
    """
    folder = Path(tempfile.mkdtemp(prefix="reliability-"))
    folder.chmod(0o711)
    (folder / THROWAWAY).touch()
    servers = Servers(folder, durable=durable)
    try:
        yield servers.start()
    finally:
        servers.remove()


def _addresses(folder: Path) -> Addresses:
    state = read_state(folder)
    user = f"reliability:{state.passwords['reliability']}"
    return Addresses(
        database_url=f"postgresql://{user}@127.0.0.1:{state.ports['postgres']}/reliability",
        broker_url=f"redis://:{state.passwords['valkey']}@127.0.0.1:{state.ports['valkey']}/0",
        folder=folder,
    )
