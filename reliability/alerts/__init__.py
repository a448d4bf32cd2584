"""Wakes somebody: rules over the tables, alerts that open once, mails that arrive once."""

from reliability.alerts.deliver import Delivered, deliver
from reliability.alerts.evaluate import Evaluated, evaluate
from reliability.alerts.notices import tell_askers
from reliability.alerts.shipped import ship_rules

__all__ = ["Delivered", "Evaluated", "deliver", "evaluate", "ship_rules", "tell_askers"]
