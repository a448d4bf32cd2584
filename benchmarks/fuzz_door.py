"""Fuzz the webhook door over a real socket: `python benchmarks/fuzz_door.py --cases 100000`."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    cases = parser.parse_args().cases
    test = [sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics",
            "tests/database/test_fuzz_door.py"]  # fmt: skip
    return subprocess.call(test, cwd=ROOT, env=os.environ | {"FUZZ_CASES": str(cases)})


if __name__ == "__main__":
    sys.exit(main())
