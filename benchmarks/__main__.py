"""Run one benchmark against the servers the environment names; see ``manage.py bench``."""

import argparse
import importlib
import os

import django
from django.conf import settings
from django.core.management import call_command


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("subject")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--part", action="append")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reliability.project.settings")
    django.setup()
    call_command("migrate", verbosity=0)
    _tell_peers_the_addresses()
    module = importlib.import_module(f"benchmarks.{asked.subject}")
    module.main(
        size=asked.size, rounds=asked.rounds, parts=asked.part or list(module.PARTS),
        as_json=asked.json, **({"jobs": asked.jobs} if asked.jobs else {}),
    )  # fmt: skip


def _tell_peers_the_addresses() -> None:
    """Peers read plain URLs; ours finds its servers by the data folder."""
    base = settings.DATABASES["default"]
    host = f"{base['USER']}:{base['PASSWORD']}@{base['HOST']}:{base['PORT']}"
    os.environ["DATABASE_URL"] = f"postgresql://{host}/{base['NAME']}"
    os.environ["EFFECT_URL"] = os.environ["DATABASE_URL"]
    os.environ["BROKER_URL"] = settings.CELERY_BROKER_URL


if __name__ == "__main__":
    main()
