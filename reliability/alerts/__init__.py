"""Wakes somebody: rules over the tables, alerts that open once, mails that arrive once."""
