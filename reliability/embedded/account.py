"""The unprivileged account the servers run as when we are root, and what it can reach."""

import os
import pwd
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from reliability.embedded.errors import EmbeddedUnavailable

ACCOUNT = "nobody"


@dataclass(frozen=True)
class Account:
    """Who runs a server: `None` as user means ourselves."""

    user: int | None
    group: int | None

    def popen(self) -> dict[str, Any]:
        """Return the arguments that make `subprocess` run a program as this account."""
        if self.user is None:
            return {}
        return {"user": self.user, "group": self.group, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Give a path we made to this account."""
        if self.user is not None and self.group is not None:
            os.chown(path, self.user, self.group, follow_symlinks=False)

    def can_enter(self, folder: Path) -> bool:
        """Tell whether this account may pass through the folder to a path it knows."""
        return self._may("x", folder)

    def can_run(self, program: Path) -> bool:
        """Tell whether this account may run the program."""
        return self._may("x", program) and self._may("r", program)

    def _may(self, access: str, path: Path) -> bool:
        # Asked of the system itself, so that access lists and mount options count too.
        command = ["/bin/sh", "-c", f'test -{access} "$1"', "sh", str(path)]
        done = subprocess.run(command, check=False, cwd="/", **self.popen())  # noqa: S603
        return done.returncode == 0


def server_account() -> Account:
    """Return ourselves, or the unprivileged account when we are root: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return Account(None, None)
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        raise EmbeddedUnavailable(
            f"The embedded servers do not run as root and there is no account {ACCOUNT!r}. "
            "Run as another user, or set DATABASE_URL and BROKER_URL."
        ) from None
    return Account(entry.pw_uid, entry.pw_gid)


def reachable_folder(key: Path, *, account: Account) -> Path:
    """Make, once, a folder of ours outside the project that the account can enter.

    Named by a digest of `key`, below the system's state folder or else its temporary one;
    refused when somebody else already owns that name.
    """
    name = f"reliability-{sha256(os.fsencode(key.resolve())).hexdigest()[:16]}"
    for parent in (Path("/var/lib"), Path(tempfile.gettempdir())):
        if os.access(parent, os.W_OK | os.X_OK):
            folder = parent / name
            folder.mkdir(mode=0o755, exist_ok=True)
            _refuse_strangers(folder)
            if account.can_enter(folder):
                return folder
    raise EmbeddedUnavailable(
        f"No folder was found that account {ACCOUNT!r} can enter; "
        "set RELIABILITY_DATA to one, or set DATABASE_URL and BROKER_URL."
    )


def _refuse_strangers(folder: Path) -> None:
    if folder.is_symlink() or folder.lstat().st_uid != os.geteuid():
        raise EmbeddedUnavailable(
            f"{folder} belongs to somebody else; remove it or ask them to."
        )
