"""Scripts read with tree-sitter, in a process of their own that ``program`` starts. Imports nothing of Toolyard.

Grammars are C: on a strange file they crash, never end or eat all memory (fifteen characters are enough), and here they
take nothing with them. stdin: one JSON object of ``path`` (where to import from), ``language`` and ``texts``; stdout:
for each text a list of [index, message].
"""

import json
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, TreeCursor

_MEMORY_BYTES = 1 << 30
_MAX_PROBLEMS = 20
_CLOSING = {"{": "}", "(": ")", "[": "]", "${": "}", '"': '"', "'": "'", "`": "`"}
_IMPORT_TYPE = re.compile(rb"""\bimport\([ \t]*+(?:"[^"\n]*+"|'[^'\n]*+')[ \t]*+\)""")
_EXPORT_TYPES = re.compile(rb"\b(export[ \t]+)type(?=[ \t]*+\*)")
_ABSTRACT_KEY = re.compile(rb"\babstract(?=\??:)")


class Problem(NamedTuple):
    start: int  # in bytes
    message: str


class _Node(NamedTuple):
    kind: str
    start: int
    end: int
    line: int
    is_error: bool
    is_missing: bool
    has_error: bool


def main() -> None:
    with suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    language = _load_grammar(request["language"])
    json.dump([find_problems(text, language) for text in request["texts"]], sys.stdout)


def find_problems(text: str, language: "Language") -> list[tuple[int, str]]:
    from tree_sitter import Parser

    raw = text.encode()
    tree = Parser(language).parse(_replace_unknown_syntax(raw))
    problems = islice(_walk_problems(tree.walk(), raw), _MAX_PROBLEMS)
    return [(len(raw[: problem.start].decode(errors="replace")), problem.message) for problem in problems]


def _load_grammar(name: str) -> "Language":
    from tree_sitter import Language

    if name == "javascript":
        import tree_sitter_javascript

        return Language(tree_sitter_javascript.language())
    import tree_sitter_typescript

    is_tsx = name == "tsx"
    return Language(tree_sitter_typescript.language_tsx() if is_tsx else tree_sitter_typescript.language_typescript())


def _replace_unknown_syntax(raw: bytes) -> bytes:
    """Replace correct syntax that the grammars do not know by something of the same length that they know."""
    raw = raw.replace(b"&", b"|")  # a lone & is fine in the text and the attributes of JSX, and | fits where & does
    raw = _IMPORT_TYPE.sub(lambda match: b"i" * len(match[0]), raw)
    return _ABSTRACT_KEY.sub(b"abstrac_", _EXPORT_TYPES.sub(rb"\1    ", raw))


def _walk_problems(cursor: "TreeCursor", raw: bytes) -> Iterator[Problem]:
    """The bad nodes in order. By cursor: a node keeps its children, and a deep tree of such nodes cannot be freed."""
    while True:
        node = _read_node(cursor)
        inside = _list_children(cursor) if node.has_error and not node.is_missing else []
        problems = list(_node_problems(node, inside, raw))
        yield from problems
        if any(child.has_error for child in inside) and not (node.is_error and problems) and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _node_problems(node: _Node, inside: list[_Node], raw: bytes) -> Iterator[Problem]:
    """Yield the problems of a node itself; none when nodes inside it tell more."""
    if not node.has_error or node.is_missing:
        return
    missing = [child for child in inside if child.is_missing]
    unclosed = _find_unclosed(inside, raw) if node.is_error else None
    if unclosed:
        yield unclosed
    elif missing:
        yield from (problem for child in missing if (problem := _missing_token(child, inside[0], raw)))
    elif not any(child.has_error for child in inside):
        yield (
            _unexpected_token(node, raw)
            if node.is_error
            else Problem(node.start, f"something is missing before {_quote(raw[node.end :])}")
        )


def _missing_token(node: _Node, opening: _Node, raw: bytes) -> Problem | None:
    rest_of_line = raw[node.start : node.start + 200].split(b"\n")[0]
    if node.kind == ";" and not rest_of_line.strip():
        return None  # the end of a line is enough, though the grammars do not see it everywhere
    if _CLOSING.get(opening.kind) == node.kind:
        return Problem(node.start, f"missing `{node.kind}` for the `{opening.kind}` in line {opening.line}")
    return Problem(node.start, f"missing `{node.kind}`")


def _find_unclosed(inside: list[_Node], raw: bytes) -> Problem | None:
    """The innermost bracket, quote or JSX tag in an error that is not closed, or is closed by another one."""
    opened: list[_Node] = []
    for child in inside:
        expected = _CLOSING.get(opened[-1].kind) if opened else None
        if child.kind == expected:
            opened.pop()
        elif child.kind in _CLOSING or child.kind == "jsx_opening_element":
            opened.append(child)
        elif expected and child.kind in _CLOSING.values():
            return Problem(child.start, f"`{child.kind}` where `{expected}` was expected")
    if not opened:
        return None
    return Problem(opened[-1].start, f"{_quote(raw[opened[-1].start : opened[-1].end])} is not closed")


def _unexpected_token(node: _Node, raw: bytes) -> Problem:
    text = raw[node.start : node.end].strip()
    if not raw[node.end :].strip() and not text.endswith((b"}", b")", b"]")):
        return Problem(len(raw[: node.end].rstrip()), f"the end comes too early, after {_quote(text)}")
    return Problem(node.start, f"unexpected token near {_quote(text)}")


def _list_children(cursor: "TreeCursor") -> list[_Node]:
    children: list[_Node] = []
    if cursor.goto_first_child():
        children.append(_read_node(cursor))
        while cursor.goto_next_sibling():
            children.append(_read_node(cursor))
        cursor.goto_parent()
    return children


def _read_node(cursor: "TreeCursor") -> _Node:
    node = cursor.node
    if node is None:
        raise ValueError("a cursor without a node")
    line = node.start_point.row + 1
    return _Node(node.type, node.start_byte, node.end_byte, line, node.is_error, node.is_missing, node.has_error)


def _quote(raw: bytes, limit: int = 40) -> str:
    line = raw.strip()[:400].decode(errors="replace").split("\n")[0].rstrip()
    return f"`{line[:limit]}…`" if len(line) > limit else f"`{line}`"


if __name__ == "__main__":
    main()
