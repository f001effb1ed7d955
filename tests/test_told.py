"""What the server says about plugins, settings and the machine, and the console's list of it in Chinese."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/toolyard"
LIST = ROOT / "console/src/lib/told.zh.json"
SPOKEN = (
    *("doctor.py", "web/views/plugin.py", "web/routes/plugin_cases.py", "gateway/probe.py"),
    *(
        f"plugins/{name}.py"
        for name in (
            "lint",
            "command_line",
            "python_syntax",
            "plugin_files",
            "prompt_injection",
            "discovery",
            "roots",
            "case_file",
        )
    ),
    *(
        f"protocol/manifests/{name}.py"
        for name in ("commands", "config_schema", "fields", "manifest_parser", "manifest_json", "translations")
    ),
)
# Joints of several of them, and what is no sentence: a pattern, a type, an example that is the same everywhere.
SILENT = frozenset(
    {"{} {}", '"{}"', "{}: {}", "'{}' is {}.{}", "It is ignored.", '{"protocol": "stdio"}', "dict[JsonPath, Json]"}
    | {"Bearer {}", "{} ({})", "{}{}\n  {}\n]", "call '{}' of {}"}
)
PATTERN = re.compile(r"\\|\(\?|占位符")
VALUE = re.compile(r"(?<!\{)\{\w+\}(?!\})")  # of str.format


def sentences(file: Path) -> set[str]:
    """Every text with a blank in a module that is no docstring, with {} where something is put in."""
    tree = ast.parse(file.read_text())
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (_text(node) for node in ast.walk(tree) if id(node) not in inner)
    return {text.strip().removeprefix(": ") for text in texts if text and " " in text.strip()}


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return VALUE.sub("{}", node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def shape(template: str) -> re.Pattern[str]:
    return re.compile(".*?".join(map(re.escape, template.split("{}"))), re.DOTALL)


@pytest.mark.requirement("console:languages")
@pytest.mark.parametrize("module", SPOKEN)
def test_the_console_knows_every_sentence_of_the_doctor_and_about_plugins_in_chinese(module: str) -> None:
    shapes = [shape(template) for template in json.loads(LIST.read_text())]
    said = {text for text in sentences(SOURCE / module) if text not in SILENT and not PATTERN.search(text)}
    assert said
    assert sorted(text for text in said if not any(known.fullmatch(text) for known in shapes)) == []


@pytest.mark.requirement("console:languages")
def test_every_sentence_in_chinese_has_the_values_of_the_english_one_and_is_chinese() -> None:
    for english, chinese in json.loads(LIST.read_text()).items():
        values = {f"{{{number}}}" for number in range(english.count("{}"))}
        found = set(re.findall(r"\{\d\}", chinese))
        assert found <= values, english
        assert len(values - found) <= (1 if "counts as not set" in english else 0), english
        assert re.search(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]", chinese) or english.startswith("chmod"), english
