"""Layer 3: the daily compare, which finds what never arrived."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reliability.reconcile.planner import plan

__all__ = ["plan"]


def __getattr__(name: str) -> Any:
    """Import what needs Django only when it is asked for, so that formats stay importable alone."""
    if name == "plan":
        from reliability.reconcile.planner import plan  # noqa: PLC0415

        return plan
    raise AttributeError(f"module 'reliability.reconcile' has no attribute {name!r}")
