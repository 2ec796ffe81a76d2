"""Conditions in which values of different types are not compared: `==`, `!=` and `in` are errors there, and
so is `string` of a number with a fraction, which the engine writes in six digits (`9.9e+07`).

In CEL a list simply never equals a text. A tool may take `["eve@rival.example"]` for the address in it,
though, and a rule that denies the address would not speak of it. An error denies, and says why.

The engine has no setting for that, so what it has parsed is rewritten: `a == b` to `same(a, b) ? a == b : an
error`. What it keeps is a message of Protocol Buffers (cel.expr.ParsedExpr), of which the few fields that
matter are read here.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from cel_expr_python import cel

DIFFERENT = "values of different types are compared"
NO_TEXT = "a number with a fraction is made a text"
FIRST, SECOND, PAIR, MEMBER = "first__", "second__", "pair__", "member__"
NUMBER = " || ".join(f"type({{0}}) == {kind}" for kind in ("int", "uint", "double"))
SAME = (
    f"type({{0}}) == type({{1}}) || {{0}} == null || {{1}} == null || (({NUMBER}) && "
    f"({NUMBER.replace('{0}', '{1}')}))"
)
# By the engine's name of an operator: as it is written, and of what pair of values it may be asked. Of an
# object `in` asks for a name.
OF_PAIR = SAME.format(f"{PAIR}[0]", f"{PAIR}[1]")
COMPARING = {
    b"_==_": ("==", OF_PAIR),
    b"_!=_": ("!=", OF_PAIR),
    b"@in": ("in", f"{PAIR}[1].all({MEMBER}, {SAME.format(f'{PAIR}[0]', MEMBER)})"),
}
TEXT_OF_WHOLE = (
    f"[{FIRST}].map({PAIR}, type({PAIR}) != double ? string({PAIR}) : "
    f'{PAIR} == double(int({PAIR})) ? string(int({PAIR})) : {{}}["{NO_TEXT}"])[0]'
)
# Each operand once, so that comparisons within comparisons do not grow beyond measure, and both where no
# name but the condition's own is known. (What `cel.bind` names is evaluated where it is used, among the names
# that are known there.)
WRITTEN = {
    function: f"[[{FIRST}, {SECOND}]].map({PAIR}, ({may_be}) ? {PAIR}[0] {sign} {PAIR}[1] : "
    f'{{}}["{DIFFERENT}"])[0]'
    for function, (sign, may_be) in COMPARING.items()
} | {b"string": TEXT_OF_WHOLE}
OPERANDS = {b"string": (FIRST,)}

# Fields of the messages: what of an expression is an expression, by the kind of it.
ANY_VALUE, PARSED_EXPRESSION = 2, 2
IDENTIFIER, SELECT, CALL, LIST, STRUCT, COMPREHENSION = 4, 5, 6, 7, 8, 9
INSIDE = {SELECT: (1,), CALL: (1, 3), LIST: (1,), COMPREHENSION: (2, 4, 5, 6, 7)}
ENTRIES, ENTRY_VALUES = 2, (3, 4)
FUNCTION, ARGUMENTS = 2, 3
BYTES = 2  # a wire type: a length, and so many bytes

Field = tuple[int, int, bytes]


class TooDeep(RuntimeError):
    """As the engine raises of what it does not compile: some ten comparisons stand in one another."""


def strict(env: cel.Env, program: cel.Expression) -> cel.Expression:
    """The same condition, which says of no two values of different types whether they are equal. Raises
    TooDeep.
    """
    written = _message(_each(_fields(program.serialize()), (ANY_VALUE,), _of_parsed))
    try:
        return env.deserialize(written)
    except RuntimeError as failure:  # Protocol Buffers reads a hundred messages in one another
        raise TooDeep("there are too many comparisons in one another") from failure


def _of_parsed(message: bytes) -> bytes:
    return _message(_each(_fields(message), (PARSED_EXPRESSION,), _of))


def _of_entry(entry: bytes) -> bytes:
    return _message(_each(_fields(entry), ENTRY_VALUES, _of))


def _of(expression: bytes) -> bytes:
    """The expression, rewritten from within."""
    fields: list[Field] = []
    for number, wire, value in _fields(expression):
        if number == STRUCT:
            value = _message(_each(_fields(value), (ENTRIES,), _of_entry))
        elif number in INSIDE:
            value = _message(_each(_fields(value), INSIDE[number], _of))
        fields.append((number, wire, value))
    call = next((value for number, _, value in fields if number == CALL), b"")
    parts = list(_fields(call))
    function = next((value for number, _, value in parts if number == FUNCTION), b"")
    operands = [value for number, _, value in parts if number == ARGUMENTS]
    names = OPERANDS.get(function, (FIRST, SECOND))
    if function in WRITTEN and len(operands) == len(names):
        return _filled(_template(function), dict(zip(names, operands, strict=True)))
    return _message(fields)


@cache
def _template(function: bytes) -> bytes:
    """The expression that a comparison becomes, with names in place of what is compared."""
    program = cel.NewEnv().compile(WRITTEN[function], disable_check=True)
    parsed = next(value for number, _, value in _fields(program.serialize()) if number == ANY_VALUE)
    return next(value for number, _, value in _fields(parsed) if number == PARSED_EXPRESSION)


def _filled(expression: bytes, operands: dict[str, bytes]) -> bytes:
    """The template with the operands in it."""
    fields = list(_fields(expression))
    for number, _, value in fields:
        if number == IDENTIFIER:
            name = b"".join(text for _, _, text in _fields(value)).decode()
            if name in operands:
                return operands[name]

    def inner(part: bytes) -> bytes:
        return _filled(part, operands)

    return _message(
        (number, wire, _message(_each(_fields(value), INSIDE[number], inner)) if number in INSIDE else value)
        for number, wire, value in fields
    )


# Protocol Buffers' wire format


def _each(
    fields: Iterable[Field], numbers: tuple[int, ...], change: Callable[[bytes], bytes]
) -> Iterator[Field]:
    for number, wire, value in fields:
        yield number, wire, change(value) if number in numbers and wire == BYTES else value


def _fields(message: bytes) -> Iterator[Field]:
    """Number, wire type and value of each field; of a number its own bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == BYTES:
            length, at = _varint(message, at)
            end = at + length
        else:
            end = _varint(message, at)[1] if wire == 0 else at + (8 if wire == 1 else 4)
        yield tag >> 3, wire, message[at:end]
        at = end


def _message(fields: Iterable[Field]) -> bytes:
    found = b""
    for number, wire, value in fields:
        found += _as_varint(number << 3 | wire) + (_as_varint(len(value)) if wire == BYTES else b"") + value
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    found, shift = 0, 0
    while True:
        byte = message[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return found, at


def _as_varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])
