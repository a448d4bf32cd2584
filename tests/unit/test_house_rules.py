"""The rules of the house that no linter knows: sizes, headers, who moves a job, what is never said."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "reliability"
FILE_LINES_MAX, FUNCTION_LINES_MAX, CONSOLE_JS_LINES_MAX = 300, 40, 80

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files(*folders: str, ending: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob(f"*{ending}"))
    return sorted(path for path in found if "migrations" not in path.parts)


CODE = files("reliability", ending=".py")
ALL_CODE = CODE + files("tests", "benchmarks", ending=".py")
SQL = files("reliability/sql", ending=".sql")
TEMPLATES = files("templates", "reliability", ending=".html")
TEXT = [
    *ALL_CODE, *SQL, *TEMPLATES, *files("docs", ending=".md"), *files("templates", ending=".txt"),
    *files("static", ending=".css"), *files("static", ending=".js"),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml")),
]  # fmt: skip


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(read(path))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree(path)) if isinstance(node, Function))


def test_no_file_is_longer_than_300_lines() -> None:
    long = [named(p) for p in CODE if len(read(p).splitlines()) > FILE_LINES_MAX]
    assert long == []


def test_no_function_is_longer_than_40_lines() -> None:
    long = [
        f"{named(path)}:{function.name}"
        for path in CODE
        for function in functions(path)
        if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_every_module_says_in_one_sentence_what_it_is() -> None:
    silent = [
        named(path)
        for path in ALL_CODE
        if read(path).strip() and not _a_sentence(ast.get_docstring(tree(path)) or "")
    ]
    assert silent == []


def _a_sentence(text: str) -> bool:
    first, _, _ = text.partition("\n\n")
    return first.rstrip().endswith((".", "?", "!"))


def test_no_module_is_called_for_what_it_is_not() -> None:
    vague = {
        "utils",
        "helpers",
        "common",
        "services",
        "selectors",
        "manager",
        "managers",
        "misc",
    }
    assert [named(path) for path in CODE if vague & {path.stem, path.parent.name}] == []


def test_only_the_work_layer_moves_a_job() -> None:
    movers = {
        named(path)
        for path in CODE
        if (PACKAGE / "work") not in path.parents
        and any(_moves(node) for node in ast.walk(tree(path)))
    }
    assert movers == set()


def _moves(node: ast.AST) -> bool:
    """Tell whether a call writes a column ``state``, by whatever method of a queryset."""
    match node:
        case ast.Call(func=ast.Attribute(attr="update" | "update_or_create"), keywords=words):
            return any(word.arg == "state" for word in words)
        case ast.Assign(targets=[ast.Attribute(attr="state")]):
            return "job" in ast.unparse(node.targets[0]).lower()
        case _:
            return False


MOVES_BY_STATEMENT = {
    "bury_job", "bury_unconfirmed", "claim_job_alone", "claim_job_inline", "claim_jobs", "expire_jobs", "finish_jobs", "finish_late",
    "requeue_members", "rescue_job", "resolve_members", "return_job",
}  # fmt: skip
"""The statements that move a job; each names the state or the token it expects."""


def test_only_these_statements_move_a_job_and_only_the_work_layer_runs_them() -> None:
    moving = {path.stem for path in SQL if _sets_state(read(path))}
    assert moving <= MOVES_BY_STATEMENT
    runners = {
        named(path)
        for path in CODE
        for name in moving
        if f'"{name}"' in read(path) and (PACKAGE / "work") not in path.parents
    }
    assert runners == set()


def _sets_state(text: str) -> bool:
    updates = re.findall(r"UPDATE reliability_job\b.*?\bWHERE\b", text, re.DOTALL)
    return any(re.search(r"\bstate\s*=", update) for update in updates)


def test_every_statement_has_a_header_and_is_run_by_its_name() -> None:
    code = "\n".join(read(path) for path in CODE)
    for path in SQL:
        text = read(path)
        header, _, body = text.partition("\n\n")
        assert header.startswith("-- "), f"{named(path)} says nothing of itself"
        assert "\n-- ->" in header, f"{named(path)} does not say what it returns"
        assert ";" not in re.sub(r"--.*|'[^']*'", "", body), f"{named(path)} is one statement"
        for parameter in set(re.findall(r"%\((\w+)\)s", body)) - {"tenant_id", "source_id"}:
            known = re.search(rf"\b{parameter}\b", header) or "a column" in header
            assert known, f"{named(path)} does not explain {parameter}"
        assert f'"{path.stem}"' in code, f"{named(path)} is run by nobody"


FORBIDDEN_WORDS = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")
MACHINE_PATHS = tuple(f"/{folder}/" for folder in ("work", "root", "home"))


@pytest.mark.parametrize("word", [*FORBIDDEN_WORDS, *MACHINE_PATHS])
def test_nothing_is_left_open_and_no_machine_is_named(word: str) -> None:
    at = re.compile(rf"(?<![\w.:}}>/]){re.escape(word)}(?!s are refused)")
    said = [
        f"{named(path)}: {line.strip()}"
        for path in TEXT
        if path.exists() and path != Path(__file__)
        for line in read(path).splitlines()
        if at.search(line)
    ]
    assert said == []


INLINE = re.compile(
    r"\sstyle\s*=|<style|\son\w+\s*=|<script(?![^>]*\ssrc=)|javascript:", re.IGNORECASE
)


def test_no_template_has_inline_style_or_script() -> None:
    assert [named(path) for path in TEMPLATES if INLINE.search(read(path))] == []


def test_the_console_s_own_script_stays_small() -> None:
    script = ROOT / "static" / "console" / "console.js"
    assert len(script.read_text().splitlines()) <= CONSOLE_JS_LINES_MAX


def test_every_test_says_a_sentence() -> None:
    terse = [
        f"{named(path)}:{function.name}"
        for path in files("tests", ending=".py")
        for function in functions(path)
        if function.name.startswith("test_") and function.name.count("_") < 3
    ]
    assert terse == []


def test_decisions_are_numbered_once_and_say_what_would_change_them() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    numbers = [path.name[:4] for path in records]
    assert len(numbers) == len(set(numbers))
    for path in records:
        text = read(path)
        for part in ("**Question", "**Choice", "**Cost", "**What would change it"):
            assert part in text, f"{named(path)} lacks {part.strip('*')}"


def test_every_glossary_word_has_one_line() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    words = re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE)
    assert len(words) == len(set(words)) > 40
    for word in ("event", "event key", "operation", "lease", "bell", "dead letter", "effect"):
        assert word in words
