"""The admin of what is known: deposited knowledge, and what agents remember of people and their work."""

from . import knowledge, remembered

__all__ = ["knowledge", "remembered"]
