"""The sentences of the code and their catalogue: lists what has no Chinese, and with ``--write`` sorts the catalogue.

A sentence without Chinese is shown in English and stops nothing; ``make check`` names it.
"""

import argparse
import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
CATALOGUE = ROOT / "src/toolyard/messages.json"


class Call(NamedTuple):
    """A place where the code makes a message."""

    place: str
    template: str
    params: frozenset[str]


def find_calls() -> Iterator[Call]:
    for file in sorted((ROOT / "src/toolyard").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Message":
                place = f"{file.relative_to(ROOT)}:{node.lineno}"
                (template,) = (ast.literal_eval(argument) for argument in node.args)
                yield Call(place, template, frozenset(str(keyword.arg) for keyword in node.keywords))


def format_catalogue(catalogue: dict[str, dict[str, str]]) -> str:
    """Return the catalogue as its file: a line for each sentence, in their order, so that changes are small."""
    rows = (f"  {_dump(template)}: {_dump(row)}" for template, row in sorted(catalogue.items()))
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="sort the catalogue, instead of listing what is missing")
    catalogue: dict[str, dict[str, str]] = json.loads(CATALOGUE.read_text())
    if parser.parse_args().write:
        CATALOGUE.write_text(format_catalogue(catalogue))
        return
    missing = {call.template: call.place for call in find_calls() if "zh" not in catalogue.get(call.template, {})}
    for template, place in missing.items():
        print(f"{place}: no Chinese for {template!r}: {CATALOGUE.relative_to(ROOT)}")  # noqa: T201


if __name__ == "__main__":
    _main()
