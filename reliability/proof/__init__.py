"""Prove from outside that every operation took effect once."""
