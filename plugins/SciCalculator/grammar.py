"""From text to a tree: full-width signs made plain, tokens, then precedence climbing. Nothing is evaluated here.

From loose to tight: conversion (``to``), comparison, sum, product, sign, implied product (``2x``, ``5 km``), power,
postfix (``!``, ``%``). An implied product binds tighter than ``*`` and ``/``: ``1/2x`` is ``1/(2x)``.
Bounds: 4000 characters, 100 levels of nesting.
"""

from nodes import CalcError, Node
from tokens import Token, literal, plain, tokens

MAX_LENGTH = 4000
MAX_NESTING = 100

_TO = {"to", "->", "转", "转为", "转成", "转换为", "换算成", "换算为", "化为"}
_STARTS = ("num", "name", "text")
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
_PRODUCTS = {"*": "*", "/": "/", "//": "floordiv", "%": "mod", "mod": "mod"}


def parse(text: str) -> Node:
    """The tree of one expression; several separated by commas or semicolons become one ``rows`` node."""
    if len(text) > MAX_LENGTH:
        raise CalcError(
            f"the expression is too long: {len(text)} characters of {MAX_LENGTH} at most",
            "Split it into several expressions.",
        )
    source = plain(text).strip().rstrip("=?？").strip()
    if not source:
        raise CalcError("the expression is empty", "Write what to calculate, such as 2+3*4.")
    reader = _Reader(tokens(source), len(source))
    rows = [reader.expression()]
    while reader.take(",") or reader.take(";"):
        rows.append(reader.expression())
    reader.finish()
    return rows[0] if len(rows) == 1 else Node("rows", tuple(rows))


class _Reader:
    """Reads the tokens from left to right, once."""

    def __init__(self, tokens: list[Token], end: int) -> None:
        self.tokens = tokens
        self.end = end
        self.next = 0
        self.depth = 0

    def peek(self, ahead: int = 0) -> Token:
        """A token not yet taken; behind the last one stands an empty one."""
        index = self.next + ahead
        return self.tokens[index] if index < len(self.tokens) else ("end", "", self.end)

    def take(self, *texts: str) -> Token | None:
        """Takes the next token if it is one of these signs or words."""
        kind, text, _ = token = self.peek()
        if kind in ("op", "name") and text in texts:
            self.next += 1
            return token
        return None

    def expect(self, text: str) -> None:
        """Takes this sign or says that it is missing."""
        if not self.take(text):
            kind, found, at = self.peek()
            seen = "but the expression ends here" if kind == "end" else f"but here is '{found}'"
            raise CalcError(
                f"'{text}' is missing, {seen}",
                "Check that brackets come in pairs and commas separate the arguments.",
                at,
            )

    def finish(self) -> None:
        """Refuses what is left over."""
        kind, text, at = self.peek()
        if kind != "end":
            raise CalcError(f"unexpected '{text}'", "Check the operators and brackets around it.", at)

    def expression(self) -> Node:
        """An expression, perhaps an equation, perhaps with a conversion behind it."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise CalcError(
                f"brackets are nested more than {MAX_NESTING} levels deep",
                "Calculate it in several steps.",
                self.peek()[2],
            )
        node = self.comparison()
        while self._converts():
            at = self.peek()[2]
            self.next += 1
            node = Node("to", (node, self.product()), at=at)
        if token := self.take("="):
            node = Node("=", (node, self.comparison()), at=token[2])
        self.depth -= 1
        return node

    def _converts(self) -> bool:
        kind, text, _ = self.peek()
        if text in _TO and kind in ("name", "op"):
            return True
        following = self.peek(1)
        return text == "in" and following[0] == "name" and following[1] not in (*_TO, "in")

    def comparison(self) -> Node:
        """One comparison at most: chains are not arithmetic."""
        node = self.sum()
        if token := self.take(*_COMPARISONS):
            node = Node(token[1], (node, self.sum()), at=token[2])
        return node

    def sum(self) -> Node:
        """Terms with + and -."""
        node = self.product()
        while token := self.take("+", "-"):
            node = Node(token[1], (node, self.product()), at=token[2])
        return node

    def product(self) -> Node:
        """Factors with *, /, // and the modulus."""
        node = self.sign()
        while token := self.take(*_PRODUCTS):
            node = Node(_PRODUCTS[token[1]], (node, self.sign()), at=token[2])
        return node

    def sign(self) -> Node:
        """A leading sign goes to the first factor, so that -40 degC is forty below zero."""
        if token := self.take("-", "+"):
            self.depth += 1
            if self.depth > MAX_NESTING:
                raise CalcError("too many signs in a row", "Remove those that are not needed.", token[2])
            operand = self.sign()
            self.depth -= 1
            if token[1] == "+":
                return operand
            if operand.op == "implied" and operand.args[0].op != "^":
                first, *rest = operand.args
                return Node("implied", (Node("neg", (first,), at=token[2]), *rest), at=operand.at)
            return Node("neg", (operand,), at=token[2])
        return self.implied()

    def implied(self) -> Node:
        """Factors that only stand side by side."""
        node = self.power()
        while self._begins_factor():
            at = self.peek()[2]
            node = Node("implied", (node, self.power()), at=at)
        return node

    def _begins_factor(self) -> bool:
        kind, text, _ = self.peek()
        if kind == "name":
            return text not in (*_TO, "mod") and not (text == "in" and self._converts())
        return text == "(" or (kind == "num" and self.tokens[self.next - 1][1] in (")", "]"))

    def power(self) -> Node:
        """Right to left: 2^3^2 is 2^9."""
        node = self.postfix()
        if token := self.take("^", "**"):
            self.depth += 1
            if self.depth > MAX_NESTING:
                raise CalcError("powers are nested too deeply", "Calculate it in several steps.", token[2])
            signs = 0
            while sign := self.take("-", "+"):
                signs += sign[1] == "-"
            exponent = self.power()
            node = Node("^", (node, Node("neg", (exponent,)) if signs % 2 else exponent), at=token[2])
            self.depth -= 1
        return node

    def postfix(self) -> Node:
        """Factorials and percentages; % before an operand is the modulus instead."""
        node = self.primary()
        while True:
            if token := self.take("!"):
                node = Node("factorial", (node,), at=token[2])
            elif self.peek()[1] == "%" and not self._operand_follows():
                node = Node("percent", (node,), at=self.peek()[2])
                self.next += 1
            else:
                return node

    def _operand_follows(self) -> bool:
        kind, text, _ = self.peek(1)
        return (kind in _STARTS and text not in (*_TO, "in", "mod")) or text in ("(", "[")

    def primary(self) -> Node:
        """A number, a name, a call, a list, a quoted expression or something in brackets."""
        kind, text, at = self.peek()
        self.next += 1
        if kind == "num":
            return literal(text, at)
        if kind == "text":
            return Node("text", value=text[1:-1], at=at)
        if kind == "name":
            if self.peek()[1] == "(":
                self.next += 1
                return Node("call", self.arguments(")"), value=text, at=at)
            return Node("name", value=text, at=at)
        if text == "(":
            node = self.expression()
            if self.peek()[1] == ",":
                self.next += 1
                return Node("list", (node, *self.arguments(")")), at=at)
            self.expect(")")
            return Node("group", (node,), at=at)
        if text == "[":
            return Node("list", self.arguments("]"), at=at)
        seen = "the expression is incomplete" if kind == "end" else f"'{text}' cannot stand here"
        raise CalcError(seen, "A number, a name or an opening bracket belongs here.", at)

    def arguments(self, close: str) -> tuple[Node, ...]:
        """What stands between brackets, separated by commas; semicolons separate the rows of a matrix."""
        if self.take(close):
            return ()
        rows: list[list[Node]] = [[self.expression()]]
        while token := self.take(",", ";"):
            if token[1] == ";":
                rows.append([])
            if self.peek()[1] == close:  # a comma too many
                break
            rows[-1].append(self.expression())
        self.expect(close)
        if len(rows) == 1:
            return tuple(rows[0])
        return tuple(Node("list", tuple(row)) for row in rows)
