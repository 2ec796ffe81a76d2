"""Mutations that cosmic-ray does not have: of returned values, branches, strings and whole statements."""

from collections.abc import Iterable, Iterator
from typing import Any

from cosmic_ray.operators.operator import Operator
from parso.python.tree import Name

Position = tuple[tuple[int, int], tuple[int, int]]
SIMPLE = {"expr_stmt", "atom_expr", "raise_stmt", "assert_stmt", "return_stmt", "del_stmt"}


class Replace(Operator):
    """Replaces whatever `found` yields at a node by each of `words`."""

    words: tuple[str, ...] = ("None",)

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()

    def found(self, node: Any) -> Iterable[Any]:
        raise NotImplementedError

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        for part in self.found(node):
            for _ in self.words:
                yield part.start_pos, part.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        part = list(self.found(node))[index // len(self.words)]
        word = self.worded(part, self.words[index % len(self.words)])
        new = Name(word, part.start_pos, part.get_first_leaf().prefix)
        if part is node:
            return new
        children = part.parent.children
        children[children.index(part)] = new
        return node

    def worded(self, part: Any, word: str) -> str:
        return word


class ReturnNone(Replace):
    """`return x` becomes `return None`."""

    def found(self, node: Any) -> Iterable[Any]:
        if node.type == "return_stmt" and node.children[1].type != "keyword":
            yield node.children[1]


class Branch(Replace):
    """A condition of an if, an elif, a conditional expression or a comprehension always or never holds."""

    words = ("True", "False")

    def found(self, node: Any) -> Iterable[Any]:
        if node.type == "if_stmt":
            for word, condition in zip(node.children, node.children[1:], strict=False):
                if word.type == "keyword" and word.value in ("if", "elif"):
                    yield condition
        elif node.type == "ternary":
            yield node.children[2]
        elif node.type == "comp_if":
            yield node.children[1]


class OtherText(Replace):
    """Another string, of the same kind."""

    words = ("XX",)

    def found(self, node: Any) -> Iterable[Any]:
        if node.type in ("string", "fstring_string"):
            yield node

    def worded(self, part: Any, word: str) -> str:
        if part.type == "fstring_string":
            return part.value + word
        return f"{part.value[: part.value.index(part.value[-1]) + 1]}{word}{part.value[-1]}"


class NoStatement(Replace):
    """A statement is left out."""

    words = ("pass",)

    def found(self, node: Any) -> Iterable[Any]:
        if node.type == "simple_stmt" and node.children[0].type in SIMPLE:
            yield node.children[0]


OWN: tuple[type[Replace], ...] = (ReturnNone, Branch, OtherText, NoStatement)
