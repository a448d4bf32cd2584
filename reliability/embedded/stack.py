"""Start, watch and stop the processes of a deployment under one supervisor."""

import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import SupervisorTransport

from reliability.embedded import programs
from reliability.embedded.errors import EmbeddedUnavailable
from reliability.embedded.place import Server, free_port, named
from reliability.embedded.processes import children, end
from reliability.embedded.state import read_state, write_state

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0
# A socket's path may be 104 bytes on macOS, and the supervisor appends its number while binding.
SOCKET_PATH_BYTES_MAX = 90
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Running:
    """One supervised process as the supervisor sees it; `pid` is 0 while it is down."""

    name: str
    pid: int
    state: str


class Stack:
    """Web, workers and beat of one data folder; the servers are somebody else's.

    Every process leads a group of its own: `os.killpg(pid, SIGKILL)` takes a worker group with
    its pool, `processes.children(pid)` names the pool.
    """

    def __init__(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str],
        port: int = 0,
        web: bool = True,
        workers: int = 1,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port(0)
        self.environment = {"RELIABILITY_BASE_URL": self.url, **environment}
        self.programs = [
            *([programs.web(self.port)] if web else []),
            *(programs.jobs(number + 1) for number in range(workers)),
            programs.ticks(),
            programs.beat(self.folder),
        ]
        self._web = web
        self._supervisor: Server | None = None
        self._socket = self.folder / "run" / "supervisor.sock"
        self._short: Path | None = None

    @property
    def url(self) -> str:
        """Return where the console answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> str:
        """Start everything and return the console's URL once all of it runs.

        `environment` is the whole environment of the processes. Raises `EmbeddedUnavailable`
        with one line naming the process that does not come up.
        """
        try:
            self._launch()
            self._wait_until_up()
        except BaseException:
            self.stop()
            raise
        state = read_state(self.folder)
        write_state(self.folder, replace(state, url=self.url if self._web else None))
        return self.url

    def wait(self, each_second: Callable[[], None] = lambda: None) -> None:
        """Return at Ctrl-C, SIGTERM or a closed terminal, or when the supervisor has ended."""
        asked = threading.Event()

        def ask(_number: int, _frame: FrameType | None) -> None:
            asked.set()

        before = {number: signal.signal(number, ask) for number in STOPPING}
        try:
            while not asked.wait(1) and self._supervisor and self._supervisor.poll() is None:
                each_second()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        """Stop everything within 10 s: ask, then kill; harmless when nothing runs."""
        if self._supervisor is None:
            return
        process = named(self._supervisor)
        end([process], signal.SIGTERM, seconds=programs.STOP_SECONDS + 2)
        self._supervisor.wait()
        self._supervisor = None
        state = read_state(self.folder).with_process("supervisor", None)
        write_state(self.folder, replace(state, url=None))
        if self._short:
            self._socket.unlink(missing_ok=True)
            self._short.rmdir()
            self._short = None

    def processes(self) -> list[Running]:
        """Return every process with its number and state, RUNNING being the good one."""
        return [
            Running(each["name"], int(each["pid"]), each["statename"])
            for each in self._call("getAllProcessInfo")
        ]

    def pid(self, name: str) -> int:
        """Return the number of one process, 0 while it is down."""
        return next(each.pid for each in self.processes() if each.name == name)

    def halt(self, name: str) -> None:
        """Stop one process and keep it stopped until `resume`."""
        self._call("stopProcess", f"{programs.GROUP}:{name}")

    def resume(self, name: str) -> None:
        """Start a process that `halt` stopped."""
        self._call("startProcess", f"{programs.GROUP}:{name}")

    def _launch(self) -> None:
        for name in ("log", "run"):
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)
        if len(bytes(self._socket)) > SOCKET_PATH_BYTES_MAX:
            self._short = Path(tempfile.mkdtemp(prefix="rel-"))
            self._socket = self._short / "supervisor.sock"
        path = self.folder / "supervisor.conf"
        path.write_text(
            programs.configuration(self.folder, self.programs, root=ROOT, socket=self._socket)
        )
        with (self.folder / "log" / "supervisor.out").open("wb") as log:
            self._supervisor = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "supervisor.supervisord", "-c", path],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        state = read_state(self.folder)
        write_state(self.folder, state.with_process("supervisor", named(self._supervisor)))

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not (self._all_running() and (not self._web or _answers(self.url))):
            if time.monotonic() > deadline or (self._supervisor and self._supervisor.poll()):
                raise EmbeddedUnavailable(
                    f"Not every process came up within {START_SECONDS:.0f} s; "
                    f"see {self.folder / 'log'}."
                )
            time.sleep(0.1)

    def _all_running(self) -> bool:
        try:
            running = self.processes()
        except OSError:  # the supervisor has not opened its socket yet
            return False
        for each in running:
            if each.state == "FATAL":
                log = self.folder / "log" / f"{each.name}.log"
                raise EmbeddedUnavailable(f"{each.name} does not start: {_last_line(log)}")
        # A worker's group is complete once its pool runs; only then can it be told from its parent.
        pools = [each.pid for each in running if each.name.startswith("jobs-")]
        return all(each.state == "RUNNING" for each in running) and all(map(children, pools))

    def _call(self, method: str, *arguments: object) -> Any:
        transport = SupervisorTransport(serverurl=f"unix://{self._socket}")
        proxy = ServerProxy("http://localhost", transport=transport)
        try:
            return getattr(proxy.supervisor, method)(*arguments)
        except Fault as err:
            raise EmbeddedUnavailable(
                f"The supervisor refused {method}: {err.faultString}"
            ) from None
        finally:
            transport.close()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url + "/healthz", timeout=5):  # noqa: S310 - our own URL
            return True
    except urllib.error.HTTPError as err:  # it answers, which is all that is asked here
        err.close()
        return True
    except OSError:
        return False


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it wrote nothing"
