"""Layer 2: accepted work that stopped moving is found and started again. Every two minutes."""

from reliability.sweep.stalled import Swept, last_good, sweep

__all__ = ["Swept", "last_good", "sweep"]
