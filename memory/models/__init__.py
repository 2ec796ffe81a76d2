"""What is known: the pages of the agents' working memory."""

from memory.context.models import ContextView, Page, Segment

__all__ = ["ContextView", "Page", "Segment"]
