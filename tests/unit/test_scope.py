"""Which operation a line of a statement is about."""

import pytest

from reliability.reconcile.formats.base import Line
from reliability.reconcile.scope import scope_of


@pytest.mark.parametrize(
    ("options", "reference"), [({"grouped_classes": ["refund"]}, "po_1"), ({}, "re_1")]
)
def test_of_a_grouped_class_the_group_is_the_reference_of_a_line(
    options: dict[str, object], reference: str
) -> None:
    line = Line(1, "", "refund", -100, "EUR", 2, references={"refund": "re_1"}, group="po_1")
    scope = scope_of("mapped-csv", ["refund"], options, grace_hours=0)
    assert scope.operation(line) == ("refund", reference)
