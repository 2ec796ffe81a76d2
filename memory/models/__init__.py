"""What is known: memories, their history, the counts that weigh terms, and the pages of working memory."""

from memory.context.models import ContextView, Page, Segment
from memory.models.memories import DepositedKnowledge, Memory, MemoryRevision, MemoryStatus, MemoryType
from memory.models.statistics import PendingMemory, ScopeSize, TermCount

__all__ = [
    "ContextView",
    "DepositedKnowledge",
    "Memory",
    "MemoryRevision",
    "MemoryStatus",
    "MemoryType",
    "Page",
    "PendingMemory",
    "ScopeSize",
    "Segment",
    "TermCount",
]
