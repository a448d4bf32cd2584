"""Run a management command; what stands in its way is told in one line."""

import os
import signal
import sys
from collections.abc import Sequence

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db.utils import OperationalError, ProgrammingError

from reliability.errors import KeyNotAccepted, UseRunOnce

BEHIND = ("42P01", "42703")
"""PostgreSQL's undefined_table and undefined_column."""
START = "Start one with `make up`, or set DATABASE_URL and BROKER_URL."


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; `--traceback` shows errors in full."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reliability.project.settings")
    from django.conf import settings  # noqa: PLC0415 - only now is the module named

    try:
        settings.INSTALLED_APPS  # noqa: B018 - Django itself would swallow what this raises
        execute_from_command_line(list(arguments))
    except (ImproperlyConfigured, KeyNotAccepted, UseRunOnce) as err:
        return _refuse(err, str(err), arguments)
    except OperationalError as err:
        return _refuse(err, explain(err), arguments)
    except ProgrammingError as err:
        if getattr(err.__cause__, "sqlstate", None) not in BEHIND:
            raise
        return _refuse(
            err, "The database is behind this code; run manage.py migrate.", arguments
        )
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def explain(err: OperationalError) -> str:
    """Say in one line why the database could not be used, and what to do about it."""
    from django.conf import settings  # noqa: PLC0415 - see main

    if getattr(settings, "NOT_RUNNING", False):
        return f"No database is running. {START}"
    reason = " ".join(str(err).split())
    if getattr(err.__cause__, "sqlstate", None) is not None:
        return f"The database refused: {reason}"
    database = settings.DATABASES["default"]
    where = f"{database['HOST']}:{database['PORT'] or 5432}/{database['NAME']}"
    return f"The database {where} does not answer; check DATABASE_URL. It said: {reason}"


def _refuse(err: Exception, line: str, arguments: Sequence[str]) -> int:
    if "--traceback" in arguments:
        raise err
    sys.stderr.write(f"{line}\n")
    return 1
