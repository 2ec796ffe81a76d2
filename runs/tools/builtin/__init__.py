"""The tools Deputy brings. Importing this package registers them."""

from . import ask, escalation, mail, recall, web

__all__ = ["ask", "escalation", "mail", "recall", "web"]
