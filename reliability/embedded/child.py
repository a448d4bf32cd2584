"""Become a supervised program, leaving behind a file that names the process."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from reliability.embedded.processes import identify
from reliability.embedded.state import write_private


def main(arguments: list[str]) -> None:
    """Write who we are to the file named first, then turn into the command that follows it.

    Number and start time outlive the change of program, so the file stays true.
    """
    path, *command = arguments
    process = identify(os.getpid())
    if process is not None:
        write_private(Path(path), json.dumps(asdict(process)))
    os.execv(command[0], command)  # noqa: S606 - replacing ourselves is the point


if __name__ == "__main__":
    main(sys.argv[1:])
