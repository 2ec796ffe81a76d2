"""The tools Deputy brings. Importing this package registers them."""

from . import ask, context, escalation, mail, recall, signals, web

__all__ = ["ask", "context", "escalation", "mail", "recall", "signals", "web"]
