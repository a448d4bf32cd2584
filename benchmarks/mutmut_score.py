"""Score tests by mutmut's mutations: each alone, in a copy of the tree, on servers held open.

``python -m benchmarks.mutmut_score`` scores every module of ``TESTS``; name some to score only
those. A mutant is killed when a test fails; one that runs too long is, and is counted apart. Like
mutmut's own run it mutates what stands inside functions; ``--outside`` takes the rest instead. Each
mutant is a process, and only third-party packages are loaded before it. Ends with 1 where some
survived.
"""

import argparse
import difflib
import importlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import libcst
from mutmut.mutation.file_mutation import create_mutations, deep_replace

from benchmarks.mutants import LEFT_OUT, PASSED, ROOT
from reliability.embedded.servers import Addresses, throwaway

SECONDS_MIN, BASELINES = 20.0, 5
"""A mutant may run for so many times what the tests take without one, and never shorter than this."""
WARM = "django.db.models", "django.test", "celery", "kombu", "psycopg", "redis", "lxml.etree"

UNIT, DATABASE = "tests/unit", "tests/database"
TESTS = {
    "reliability/claim/accept.py": tuple(
        f"{DATABASE}/test_{name}.py" for name in ("claim", "enqueue", "prepared")
    ),
    "reliability/claim/together.py": (f"{DATABASE}/test_together.py",),
    "reliability/claim/enqueue.py": tuple(
        f"{DATABASE}/test_{name}.py" for name in ("enqueue", "claim")
    ),
    "reliability/claim/identity.py": (f"{UNIT}/test_identity.py",),
    "reliability/policy.py": (f"{UNIT}/test_policy.py",),
    "reliability/sweep/stalled.py": tuple(
        f"{DATABASE}/test_{name}.py" for name in ("sweep", "guards", "holds", "work")
    ),
    "reliability/sweep/prune.py": (f"{DATABASE}/test_prune.py", f"{DATABASE}/test_purge.py"),
    "reliability/sweep/ledger.py": (f"{DATABASE}/test_stretches.py",),
    "reliability/work/lease.py": tuple(
        f"{DATABASE}/test_{name}.py"
        for name in ("lease", "failures", "work", "inline", "forward")
    ),
    "reliability/work/settle.py": (f"{DATABASE}/test_work.py", f"{DATABASE}/test_failures.py"),
}
"""Each module with the tests that are about it, the quickest to fail first."""


@dataclass(frozen=True)
class Mutant:
    name: str
    code: str


@dataclass
class Score:
    killed: int = 0
    overran: int = 0
    survived: list[str] = field(default_factory=list)


def mutants(file: str, *, outside: bool) -> list[Mutant]:
    """Return mutmut's mutations of a file, one to a mutant, each named by the lines it changes."""
    code = (ROOT / file).read_text(encoding="utf-8")
    module, mutations, _, _ = create_mutations(file, code)
    made = []
    for mutation in mutations:
        inside = isinstance(mutation.contained_by_top_level_function, libcst.FunctionDef)
        if inside is not outside:
            mutated = deep_replace(module, mutation.original_node, mutation.mutated_node)
            assert isinstance(mutated, libcst.Module)
            made.append(Mutant(_named(code, mutated.code), mutated.code))
    return made


def _named(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    _, _, where, *changed = lines
    at = re.findall(r"\d+", where)[0]
    return f"{at}: " + " ".join(f"{line[0]} {line[1:].strip()}" for line in changed)


@dataclass(frozen=True)
class Bench:
    """A copy of the tree and servers for it; ``log`` holds what the last run said."""

    tree: Path
    servers: Addresses
    log: Path

    def run(self, tests: tuple[str, ...], *options: str, seconds: float) -> int | None:
        """Run tests in a process of its own; return how it ended, ``None`` if it was too slow."""
        child = os.fork()
        if not child:
            self._test([*options, *tests])
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    child = 0
                    return os.waitstatus_to_exitcode(status)
                time.sleep(0.01)
            return None
        finally:
            if child:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)

    def _test(self, arguments: list[str]) -> NoReturn:
        ended: int = 1
        try:
            os.setsid()
            out = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.chdir(self.tree)
            sys.path[:] = [str(self.tree), *(at for at in sys.path if at != str(ROOT))]
            for name in [name for name in sys.modules if name.split(".")[0] == "reliability"]:
                del sys.modules[name]
            servers = importlib.import_module("reliability.embedded.servers")
            servers.throwaway = lambda **_: nullcontext(self.servers)  # type: ignore[attr-defined]
            import pytest  # noqa: PLC0415 - it would rewrite nothing that is loaded before it

            quiet = ("-x", "-q", "--tb=line", "-p", "no:cacheprovider", "--hypothesis-seed=0")
            ended = int(pytest.main([*quiet, *arguments]))
            sys.stdout.flush()
        finally:
            os._exit(ended)

    def prepare(self, tests: tuple[str, ...]) -> float:
        """Make the database anew, run the tests without a mutant, and return how long they took."""
        took = 0.0
        for option in ("--create-db", "--reuse-db"):
            began = time.monotonic()
            if self.run(tests, option, seconds=600) != PASSED:
                raise SystemExit(
                    f"They fail without a mutant:\n{self.log.read_text()[-2000:]}"
                )
            took = time.monotonic() - began
        return took

    def last_words(self) -> str:
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", self.log.read_text(), re.MULTILINE)
        return failed[0] if failed else "no test spoke"


def score(file: str, bench: Bench, *, outside: bool) -> Score:
    """Try each mutant of a file; the file stands in the tree as it was when this returns."""
    tests, found, path = TESTS[file], Score(), bench.tree / file
    whole = path.read_text(encoding="utf-8")
    seconds = max(SECONDS_MIN, BASELINES * bench.prepare(tests))
    for mutant in mutants(file, outside=outside):
        _put(path, mutant.code)
        ended = bench.run(tests, "--reuse-db", seconds=seconds)
        if ended == PASSED:
            found.survived.append(mutant.name)
            print(f"SURVIVED  {file}:{mutant.name}", flush=True)
        elif ended is None:
            found.overran += 1
            print(f"too slow  {file}:{mutant.name}", flush=True)
            _put(path, whole)
            bench.prepare(tests)
        else:
            found.killed += 1
            print(f"killed    {file}:{mutant.name}  by {bench.last_words()}", flush=True)
    _put(path, whole)
    if bench.run(tests, "--reuse-db", seconds=600) != PASSED:
        raise SystemExit("A mutant spoilt the database: these kills say nothing.")
    return found


def _put(path: Path, code: str) -> None:
    path.write_text(code, encoding="utf-8")
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()  # it would pass for that of a mutant of the same second and size


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="*", help="to mutate; all of TESTS when none is named")
    parser.add_argument("--outside", action="store_true", help="what stands in no function")
    asked = parser.parse_args()
    for name in WARM:
        importlib.import_module(name)
    scores: dict[str, Score] = {}
    with tempfile.TemporaryDirectory() as folder, throwaway(durable=False) as servers:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
        bench = Bench(tree, servers, Path(folder) / "log")
        for file in asked.file or TESTS:
            scores[file] = score(file, bench, outside=asked.outside)
    for file, found in scores.items():
        total = found.killed + found.overran + len(found.survived)
        print(
            f"{file}: {total} mutants, {found.killed} killed, {found.overran} too slow, "
            f"{len(found.survived)} survived"
        )
    return 1 if any(found.survived for found in scores.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
