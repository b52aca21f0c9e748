"""Forms of code that most people have to read twice, and how to find them in a syntax tree.

Write an ``if`` statement, or one statement for each value, instead. Ruff refuses the forms that it
has a rule for, such as two statements on a line (E702). This module finds the others.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

DISPLAYS = (ast.Tuple, ast.List)
LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.JoinedStr)
SCALAR_TESTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
"""Comparisons that return one boolean: ``values > 0`` may be a mask, ``name in names`` cannot."""


@dataclass(frozen=True)
class Puzzle:
    """A place in a file, its form, and what to write instead."""

    line: int
    form: str
    instead: str


def is_condition(node: ast.AST) -> bool:
    """Return whether an expression is a comparison, a boolean operation or a call of ``bool``."""
    if isinstance(node, ast.Compare | ast.BoolOp):
        return True
    return is_negation(node) or is_call_of(node, "bool")


def is_negation(node: ast.AST) -> bool:
    """Return whether an expression is ``not x``."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def is_call_of(node: ast.AST, function: str) -> bool:
    """Return whether an expression calls a function with this name."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
    )


def is_sequence(node: ast.AST) -> bool:
    """Return whether an expression is a literal text, list or tuple."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.List | ast.Tuple | ast.JoinedStr)


def count_conditionals(node: ast.AST) -> int:
    """Count the conditional expressions in a tree."""
    return sum(isinstance(part, ast.IfExp) for part in ast.walk(node))


def is_nested_conditional(node: ast.AST) -> bool:
    """Return whether a conditional expression contains another one."""
    return isinstance(node, ast.IfExp) and count_conditionals(node) > 1


def is_text_with_conditional(node: ast.AST) -> bool:
    """Return whether an f-string contains a conditional expression."""
    return isinstance(node, ast.JoinedStr) and count_conditionals(node) > 0


def is_repeat_by_condition(node: ast.AST) -> bool:
    """Return whether a literal sequence is multiplied by a condition, as in ``"s" * (n > 1)``."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    orders = [(node.left, node.right), (node.right, node.left)]
    return any(is_sequence(sequence) and is_condition(times) for sequence, times in orders)


def is_and_or(node: ast.AST) -> bool:
    """Return whether ``(a and b) or c`` ends with a literal, so that it picks one of two values."""
    if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)):
        return False
    return bool(consequences_of(node.values[0])) and isinstance(node.values[-1], LITERALS)


def is_and_or_of_values(node: ast.AST) -> bool:
    """Return whether ``(a and b) or c`` picks a value: ``b`` or ``c`` is a literal.

    ``(a and b) or c`` of names, calls and comparisons may be a plain condition, and is not counted.
    """
    if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)):
        return False
    consequences = [
        consequence for value in node.values[:-1] for consequence in consequences_of(value)
    ]
    candidates = [*consequences, node.values[-1]]
    return bool(consequences) and any(isinstance(value, LITERALS) for value in candidates)


def consequences_of(node: ast.AST) -> list[ast.expr]:
    """Return ``b`` of ``a and b``, and nothing for another expression."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return node.values[-1:]
    return []


def is_table_of_booleans(node: ast.AST) -> bool:
    """Return whether ``{True: a, False: b}`` is indexed where it is written."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict)):
        return False
    keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
    return True in keys and False in keys


def is_index_by_condition(node: ast.AST) -> bool:
    """Return whether an index is one boolean, as in ``("no", "yes")[n > 1]``.

    ``values[a > b]`` may select rows of an array by a mask, and is not counted.
    """
    if not isinstance(node, ast.Subscript):
        return False
    if is_table_of_booleans(node) or is_one_boolean(node.slice):
        return True
    return is_sequence(node.value) and is_condition(node.slice)


def is_one_boolean(node: ast.AST) -> bool:
    """Return whether an expression is certainly a single boolean, or that boolean as an integer."""
    if isinstance(node, ast.Compare):
        return (
            isinstance(node.ops[0], SCALAR_TESTS)
            or is_call_of(node.left, "int")
            or is_call_of(node.left, "len")
        )
    if isinstance(node, ast.Call) and is_call_of(node, "int"):
        return any(is_condition(argument) for argument in node.args)
    return is_negation(node) or is_call_of(node, "bool")


def is_parallel_assignment(node: ast.AST) -> bool:
    """Return whether a statement has the form ``a, b = x, y``."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], DISPLAYS)
        and isinstance(node.value, DISPLAYS)
    )


def is_unrelated_assignment(node: ast.AST) -> bool:
    """Return whether ``a, b = x, y`` assigns values that do not belong together.

    Values belong together if a later value needs what an earlier target had before
    (``a, b = b, a``), or if they are one computation that differs in a single place
    (``low, high = centre - half, centre + half``).
    """
    if not isinstance(node, ast.Assign) or not isinstance(node.value, DISPLAYS):
        return False
    values = node.value.elts
    displays = [target for target in node.targets if isinstance(target, DISPLAYS)]
    return any(
        not exchanges(display.elts, values) and not are_variants(values) for display in displays
    )


def is_loop_over_one_tuple(node: ast.AST) -> bool:
    """Return whether a loop runs once, over a literal tuple, to name its values."""
    if not isinstance(node, ast.For | ast.comprehension):
        return False
    if not isinstance(node.iter, DISPLAYS) or len(node.iter.elts) != 1:
        return False
    return isinstance(node.target, DISPLAYS) and isinstance(node.iter.elts[0], DISPLAYS)


def exchanges(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    """Return whether a value reads a name that an earlier target is about to change."""
    changed: set[str] = set()
    # a starred target takes several values
    for target, value in zip(targets, values, strict=False):
        if any(
            ast.unparse(part) in changed for part in ast.walk(value) if isinstance(part, ast.expr)
        ):
            return True
        changed.add(ast.unparse(target))
    return False


def are_variants(values: list[ast.expr]) -> bool:
    """Return whether all values are the first computation with another operand or operator.

    Two attributes of one object are not computed. Two functions of one argument are two
    computations.
    """
    first = values[0]
    if not any(is_computed(part) for part in ast.walk(first)):
        return False
    return all(is_variant(first, value) for value in values[1:])


def is_computed(node: ast.AST) -> bool:
    """Return whether a node computes something: it is not a name, an attribute or a fixed key."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, ast.Constant)
    return isinstance(node, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare)


def is_variant(first: ast.expr, second: ast.expr) -> bool:
    """Return whether two expressions differ in only one place, which is not the called function."""
    if name_of_function(first) != name_of_function(second):
        return False
    return count_differences(leaves(first), leaves(second)) <= 1


def name_of_function(node: ast.expr) -> str:
    """Return the name of the function or method that an expression calls, or "" without a call."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return ast.unparse(node.func)


def leaves(node: ast.AST) -> list[str]:
    """Return the kind of each node of a tree, with its names and constants, in a fixed order."""
    texts = []
    for part in ast.walk(node):
        if isinstance(part, ast.expr_context):
            continue
        words = [
            str(value)
            for _, value in ast.iter_fields(part)
            if isinstance(value, str | int | float | bytes)
        ]
        texts.append(" ".join([type(part).__name__, *words]))
    return texts


def count_differences(first: list[str], second: list[str]) -> int:
    """Count the places in which two trees differ; trees of different sizes differ everywhere."""
    if len(first) != len(second):
        return len(first)
    return sum(left != right for left, right in zip(first, second, strict=True))


@dataclass(frozen=True)
class Form:
    """A form of code that is refused."""

    name: str
    instead: str
    is_found: Callable[[ast.AST], bool]


FORMS = (
    Form("a conditional inside a conditional", "write if statements", is_nested_conditional),
    Form("a conditional inside an f-string", "name its value first", is_text_with_conditional),
    Form("a sequence times a condition", "write an if statement", is_repeat_by_condition),
    Form("(a and b) or c", "write an if statement", is_and_or_of_values),
    Form("an index that is a condition", "write an if statement", is_index_by_condition),
    Form(
        "a parallel assignment of unrelated values",
        "write one statement for each",
        is_unrelated_assignment,
    ),
    Form("a loop over one tuple", "write one statement for each value", is_loop_over_one_tuple),
)


def find_puzzles(source: str) -> Iterator[Puzzle]:
    """Yield the refused forms in a source text, from top to bottom."""
    found: set[tuple[int, int]] = set()
    for node in ast.walk(ast.parse(source)):
        for number, form in enumerate(FORMS):
            if form.is_found(node):
                found.add((line_of(node), number))
    for line, number in sorted(found):
        form = FORMS[number]
        yield Puzzle(line, form.name, form.instead)


def line_of(node: ast.AST) -> int:
    """Return the line on which a node begins; a loop in a comprehension begins with its target."""
    if isinstance(node, ast.comprehension):
        return node.target.lineno
    if not isinstance(node, ast.expr | ast.stmt):
        raise TypeError(
            f"a form must be an expression, a statement or a loop, got {type(node).__name__}"
        )
    return node.lineno
