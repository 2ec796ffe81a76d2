"""What is known: memories, their history, the counts that weigh terms, and the pages of working memory."""

from memory.context.models import ContextView, Page, Segment
from memory.models.embeddings import Embedding, EmbeddingProgress, TextVector
from memory.models.memories import (
    DepositedKnowledge,
    Memory,
    MemoryRevision,
    MemoryStatus,
    MemoryType,
    Remembered,
)
from memory.models.statistics import DepartedTerms, PendingMemory, ScopeSize, TermCount

__all__ = [
    "ContextView",
    "DepartedTerms",
    "DepositedKnowledge",
    "Embedding",
    "EmbeddingProgress",
    "Memory",
    "MemoryRevision",
    "MemoryStatus",
    "MemoryType",
    "Page",
    "PendingMemory",
    "Remembered",
    "ScopeSize",
    "Segment",
    "TermCount",
    "TextVector",
]
