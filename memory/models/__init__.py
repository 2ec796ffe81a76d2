"""What is known: memories, their history, and the counts that search weighs terms with."""

from memory.models.memories import DepositedKnowledge, Memory, MemoryRevision, MemoryStatus, MemoryType
from memory.models.statistics import PendingMemory, ScopeSize, TermCount

__all__ = [
    "DepositedKnowledge",
    "Memory",
    "MemoryRevision",
    "MemoryStatus",
    "MemoryType",
    "PendingMemory",
    "ScopeSize",
    "TermCount",
]
