"""The deployment's settings with four threads a worker process, for what waits for a downstream."""

from reliability.project.settings import *  # noqa: F403 - the same settings but these

RELIABILITY = {"threads_max": 4}
