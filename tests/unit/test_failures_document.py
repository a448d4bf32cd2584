"""The list of failures names tests that exist, and leaves no line out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/failures.md").read_text(encoding="utf-8")
LINES = [
    "A1",
    "A2",
    "A3",
    "A4",
    "A5",
    "A6",
    "A7",
    "A8",
    "A9",
    "A10",
    "A11",
    "A12",
    "A13",
    "A14",
    "A15",
    "A16",
    "A17",
    "B1",
    "B3",
    "B4",
    "B5",
    "B6",
    "B7",
    "B8",
    "B9",
    "B10",
    "B11",
    "B13",
    "B14",
    "B15",
    "B16",
    "C1",
    "C2",
    "C3",
    "C4",
    "C5",
    "C6",
    "C8",
    "C9",
    "C10",
    "C11",
    "C12",
    "C15",
    "C16",
    "C18",
    "C20",
    "C22",
    "D1",
    "D2",
    "D3",
    "D5",
    "D6",
    "D7",
    "D8",
    "D9",
    "E1",
    "E2",
    "E4",
    "E5",
    "E6",
    "E7",
    "E8",
    "E11",
    "E12",
    "E14",
    "E15",
    "E16",
    "E17",
    "E18",
    "F2",
    "F3",
    "F5",
    "F6",
    "F8",
    "F9",
    "F10",
    "F11",
    "F12",
    "F13",
    "G1",
    "G2",
    "G3",
    "G4",
    "G5",
    "G6",
    "G7",
    "G8",
    "G9",
    "G10",
    "G11",
]

CONSOLES = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28,
    31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 50, 51, 53, 54, 55,
    56, 57, 58, 59, 60, 61, 62, 63, 66, 67,
}  # fmt: skip
"""What people said of consoles: lists, search, bulk acts and exports."""
STATEMENTS = set(range(1, 53)) - {7, 45, 47, 51}
"""What went wrong in reconciliation and in the import of statements."""

RECEIVERS = (
    {f"I{n}" for n in range(1, 21)}
    | {f"P{n}" for n in range(1, 11)}
    | {f"S{n}" for n in (1, 2, 3, 4, 5, 12)}
    | {f"U{n}" for n in (1, 2, 10, 12, 15)}
    | {f"R{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20, 21, 23, 25, 28,
                         29, 30, 31, 32, 33, 34, 35)}
)  # fmt: skip
"""Threats to ingest, outbound calls and stored bodies, and what became of other receivers."""


def test_every_failure_has_its_line_with_a_test_or_a_reason() -> None:
    rows = re.findall(r"^\| ([A-G]\d+) \| .+ \| (.+) \|$", TEXT, re.MULTILINE)
    assert [name for name, _ in rows] == LINES
    assert all(held.strip() for _, held in rows)


def test_every_complaint_about_consoles_has_its_line_with_a_test_or_a_reason() -> None:
    rows = re.findall(r"^\| K(\d+) \| .+ \| (.+) \|$", TEXT, re.MULTILINE)
    numbers = [int(number) for number, _ in rows]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) >= CONSOLES
    assert all(held.strip() for _, held in rows)


def test_every_failure_of_reconciliation_has_its_line_with_a_test_or_a_reason() -> None:
    rows = re.findall(r"^\| Z(\d+) \| .+ \| (.+) \|$", TEXT, re.MULTILINE)
    assert [int(number) for number, _ in rows] == sorted(STATEMENTS)
    assert all(held.strip() for _, held in rows)


def test_every_threat_to_a_receiver_has_its_line_with_a_test_or_a_reason() -> None:
    rows = re.findall(
        r"^\| ([IPSUR]\d+(?:, [IPSUR]\d+)*) \| .+ \| (.+) \|$", TEXT, re.MULTILINE
    )
    names = [name for first, _ in rows for name in first.split(", ")]
    assert set(names) == RECEIVERS
    assert all(held.strip() for _, held in rows)


def test_every_test_it_names_exists() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    known = set(re.findall(r"def (test_\w+)\(", code))
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    assert named - known == set()
