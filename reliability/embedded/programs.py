"""The programs of a running deployment, and the supervisor's configuration that keeps them up."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GROUP = "reliability"
# Ctrl-C to nothing left is promised within 10 s; the servers need up to 2 s after the programs.
STOP_SECONDS = 7
CELERY = ("-m", "celery", "-A", "reliability.project")
QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=INFO")


@dataclass(frozen=True)
class Program:
    """One supervised process: a short name and the arguments given to this Python."""

    name: str
    arguments: Sequence[str]
    environment: str = ""
    """Variables of this one alone, as `NAME="value"`."""


def web(port: int) -> Program:
    """Serve HTTP on loopback: two processes of threads, each client on a deadline."""
    options = ["--workers=2", "--threads=16", "--keep-alive=20", "--graceful-timeout=5"]
    options += ["--worker-class=reliability.project.web.DeadlineWorker", "--no-control-socket"]
    options += [f"--bind=127.0.0.1:{port}", "reliability.project.wsgi:application"]
    return Program(
        "web", ["-m", "gunicorn", *options], environment='RELIABILITY_PROCESS="web"'
    )


def jobs(number: int) -> Program:
    """Work on jobs: one group of a parent and two pool processes."""
    options = [f"--hostname=jobs-{number}@%h", "--queues=local,outside", "--concurrency=2"]
    return Program(f"jobs-{number}", [*CELERY, "worker", *options, *QUIET])


def ticks() -> Program:
    """Run the clock's tasks one at a time, apart from the queues they repair."""
    options = ["--hostname=ticks@%h", "--queues=ticks", "--pool=solo"]
    return Program("ticks", [*CELERY, "worker", *options, *QUIET])


def beat(folder: Path) -> Program:
    """Ring the clock."""
    options = [f"--schedule={folder / 'beat-schedule'}", "--pidfile=", "--loglevel=INFO"]
    return Program("beat", [*CELERY, "beat", *options])


def configuration(
    folder: Path, programs: Sequence[Program], *, root: Path, socket: Path
) -> str:
    """Return the supervisor's configuration: restart what crashes, stop all at once.

    One group holds every program because the supervisor stops groups one after the other.
    """
    names = ",".join(program.name for program in programs)
    head = {
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "identifier": GROUP,
            "logfile": _plain(folder / "log" / "supervisor.log"),
            "logfile_maxbytes": "5MB",
            "logfile_backups": "1",
            "pidfile": _plain(folder / "run" / "supervisor.pid"),
        },
        "unix_http_server": {"file": _plain(socket), "chmod": "0700"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": (
                "supervisor.rpcinterface:make_main_rpcinterface"
            ),
        },
        f"group:{GROUP}": {"programs": names},
    }
    sections = head | {
        f"program:{program.name}": _section(program, folder=folder, root=root)
        for program in programs
    }
    return "\n".join(
        "\n".join([f"[{title}]", *(f"{key}={value}" for key, value in body.items()), ""])
        for title, body in sections.items()
    )


def _section(program: Program, *, folder: Path, root: Path) -> dict[str, str]:
    run_file = folder / "run" / f"{program.name}.json"
    launcher = [sys.executable, "-m", "reliability.embedded.child", str(run_file)]
    command = shlex.join([*launcher, sys.executable, *program.arguments])
    return {
        "command": _plain(command),
        "directory": _plain(root),
        "environment": program.environment,
        "autorestart": "true",
        "startsecs": "3",
        "startretries": "3",
        "stopwaitsecs": str(STOP_SECONDS),
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": _plain(folder / "log" / f"{program.name}.log"),
        "stdout_logfile_maxbytes": "5MB",
        "stdout_logfile_backups": "1",
    }


def _plain(value: object) -> str:
    # The supervisor expands %(name)s in every value.
    return str(value).replace("%", "%%")
