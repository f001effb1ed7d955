"""Validators: the right place in every language, nothing on good files, and no file that harms them."""

import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes import bounded_work
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.tools.validation import (
    MAX_BYTES,
    MAX_FINDINGS,
    MAX_SECONDS,
    Finding,
    Language,
    Severity,
    Validation,
    validate,
)
from toolyard.tools.validation.program import check_all

E, W = Severity.ERROR, Severity.WARNING
pytestmark = pytest.mark.requirement("validate:after-write")

NAMES = {
    "python": "a.py",
    "json": "a.json",
    "jsonc": "tsconfig.json",
    "json5": "a.json5",
    "jsonl": "a.jsonl",
    "yaml": "a.yaml",
    "toml": "a.toml",
    "xml": "a.svg",
    "javascript": "a.js",
    "typescript": "a.ts",
    "tsx": "a.tsx",
    "css": "a.css",
    "html": "a.html",
    "shell": "a.sh",
    "markdown": "a.md",
}

GOOD = {
    "python": "import os\n\n\ndef f(a: int) -> str:\n    return f'{a!r}' + '\\d'\n",
    "json": '{"a": [1, 2.5e3, null, "\\u00e9"]}\n',
    "jsonc": '// c\n{"a": 1, /* x */ "b": ["//", "/* no */",],}\n',
    "json5": "// c\n{a: +.5, 'b': [0x1F, Infinity,], \"c\": 'x\\\ny',}\n",
    "jsonl": '{"a": 1}\n\n[2]\n"x"\n',
    "yaml": "%YAML 1.1\n---\na: &x [1, {b: c}]\nd: *x\ne: !Ref f\n<<: *x\n? [k]\n: v\n---\n- |\n  text\n",
    "toml": '[a]\nb = 1979-05-27\n[[c.d]]\ne = {f = "g"}\n',
    "xml": '<?xml version="1.0" encoding="gbk"?>\n<svg xmlns="x"><g a="é"/><!-- c --></svg>\n',
    "javascript": "#!/usr/bin/env node\nimport a from 'b'\n\n(async () => { for await (const x of y) z?.(x) })()\n"
    'export const C = () => <a href="?x=1&y=2" {...p}>A & B &amp; C</a>;\n',
    "typescript": "export type * from './x';\nconst f = <T,>(a: T & B): a is C => !!a;\nlet x: import('é').Y<Z>[];\n"
    "abstract class A { private abstract b?: number }\ninterface I { abstract?: boolean }\n",
    "tsx": "export default function P({ a }: { a: string }) {\n  return <><b>{a as string}</b> & more</>;\n}\n",
    "css": "@import url(data:text/css;x);\n:root { --a: { any thing }; --b:; }\n@media (width >= 1px) {\n  a::before { "
    'content: "}"; & > b:hover { color: color-mix(in srgb, red 50%, blue) } }\n}\n.a\\:b\\{ { *zoom: 1; }\n/* } */',
    "html": "<!doctype html>\n<html><head><meta charset=utf-8><title>a < b</title><style>a { b: c }</style>\n"
    '<script type="module">if (a < b) { f("</p>") }</script><script type="importmap">{"imports": {}}</script></head>\n'
    "<body><!-- <b> --><p>one<p>two<ul><li>a<li>b</ul><br/><img alt='>'><a href=/x/>y</a> 1 > 0 < 2 {{ a<b }}\n"
    "<svg><path d='M0'/></svg><x-y :a=\"b < c\"></x-y></body></html>\n",
    "shell": '#!/bin/bash\nshopt -s extglob\ncase $1 in\n  !(a|b)) echo "${x[@]:-$(ls)}" ;;\nesac\n'
    "cat <<'EOF'\n$((\nEOF\n",
    "markdown": "---\ntitle: a\ntags: [b]\n---\n# Text\n\n---\na: b: c\n---\n",
}

BAD: dict[str, list[tuple[str, int, int, Severity, str | None]]] = {
    "python": [
        ("def f(:\n    pass\n", 1, 7, E, "invalid syntax"),
        ("x = 1\nif x:\nprint(x)\n", 3, 1, E, "expected an indented block"),
        ("def f():\n    return (1,\n", 2, 12, E, "'(' was never closed"),
        ("é = 1\nreturn é\n", 2, 1, E, "'return' outside function"),
        ("'''abc\n", 1, 1, E, "unterminated triple-quoted string"),
    ],
    "json": [
        ('{"a": 1,\n "é": 2 "b": 3}', 2, 9, E, "Expecting ',' delimiter"),
        ("{'a': 1}", 1, 2, E, "Expecting property name"),
        ('// c\n{"a": 1}', 1, 1, E, "Expecting value"),
        ('["NaN",\n NaN]', 2, 2, W, "NaN is not JSON"),
        ("", 1, 1, E, "Expecting value"),
    ],
    "jsonc": [('// c\n{"a": 1 /* x\n */ "b": 2}', 3, 5, E, "Expecting ','"), ("{}\n /* x", 2, 2, E, "never closed")],
    "json5": [
        ("{a: 1,\n b: 2 c: 3}", 2, 7, E, "unexpected token near `c: 3`"),
        ("{a: [1}", 1, 7, E, "missing `]` for the `[` in line 1"),
    ],
    "jsonl": [('{"a": 1}\n{"b": }\n', 2, 7, E, "Expecting value")],
    "yaml": [
        ("a: b: c\n", 1, 5, E, "mapping values are not allowed"),
        ("é: [1, 2\nb: 3\n", 2, 2, E, "did not find expected"),
        ("a:\n  - b\n c: d\n", 3, 2, E, None),
        ("a: *nowhere\n", 1, 4, E, "the alias `*nowhere` has no anchor"),
        ("a: 1\nb: {c: 2}\na: 3\n", 3, 1, W, "`a` is already in line 1"),
        ("on: ${{ x }}\na: b: c\n", 2, 5, E, "mapping values"),
        ("a: \x07\n", 1, 4, E, "does not allow"),
    ],
    "toml": [
        ("a = 1\nb = [1,\n", 3, 1, E, None),
        ("a = 1\n[x\n", 2, 3, E, "Expected ']'"),
        ("a = 1\na = 2\n", 2, 6, E, "overwrite"),
    ],
    "xml": [
        ("<a>\n  <b></a>", 2, 8, E, "mismatched tag"),
        ("é<a/>", 1, 2, E, "not well-formed"),
        ("", 1, 1, E, "no element"),
    ],
    "javascript": [
        ("function f() {\n  let é = 1;\n", 2, 13, E, "missing `}` for the `{` in line 1"),
        ("const x = {a: 1 b: 2};\n", 1, 17, E, "unexpected token near `b: 2`"),
        ("/* é */ foo(1, 2\nbar()\n", 1, 12, E, "`(` is not closed"),
        ("if (x) {\n  y()\n}}\n", 3, 2, E, "unexpected token near `}`"),
        ("x = 1 +", 1, 8, E, "the end comes too early, after `x = 1 +`"),
        ("let a = 1 let b = 2", 1, 10, E, "missing `;`"),
        ('s = "abc\n', 1, 5, E, '`"` is not closed'),
        ("a = <div><p></div>;", 1, 5, E, "`<div>` is not closed"),
    ],
    "typescript": [("let a: = 1 & 2;\n", 1, 6, E, "unexpected token near `:`"), ("f(é & 2;\n", 1, 8, E, "missing `)`")],
    "tsx": [("const a = (\n  <b>\n    {c\n  </b>\n);\n", 5, 1, E, "`)` where `}` was expected")],
    "css": [
        ("a { color: red;\nb { color: blue; }\n", 1, 3, E, "`{` is never closed"),
        ("a { color: red; }\n}\n", 2, 1, E, "unexpected `}`"),
        ("a {\n  color red;\n}\n", 2, 3, E, "`color red` is no declaration"),
        ("a { color: /* c */; b: c }", 1, 5, E, "has no value"),
        ("a { width: calc(1px + (2px); }", 1, 16, E, "`(` is never closed"),
        ('a {\n  b: "c;\n}\n', 2, 6, E, 'the string `"c;` is not closed'),
        ("/* c\na {}", 1, 1, E, "`/*` is never closed"),
        ("a {}\ncolor: red;\n", 2, 1, E, "stands outside a block"),
        ("a { b: url(c; }", 1, 8, E, "`url(` is never closed"),
        ("a { b: c] }", 1, 9, E, "unexpected `]`"),
    ],
    "html": [
        ("<div>\n<p>x</div></div>", 2, 11, W, "`</div>` closes nothing"),
        ("<div>\n <section>\n</div>", 2, 2, W, "`<section>` is not closed before `</div>`"),
        ("<ul><li>a\n<b>x</ul>", 2, 1, W, "`<b>` is not closed before `</ul>`"),
        ('<p id="a>x</p>\n<p class="b">y</p>', 1, 7, E, '`"` is not closed'),
        ("<p>\n<!-- x", 2, 1, E, "`<!--` is never closed"),
        ("<p>x</p><a href='b", 1, 9, E, "the tag `<a` is never closed"),
        ("<script>\nf()", 1, 1, E, "`<script>` is never closed"),
        ("<script>\n  f(1;\n</script>", 2, 6, E, "missing `)` for the `(`"),
        ("<b>é</b> <style> a {</style>", 1, 20, E, "`{` is never closed"),
        ('<script type="application/ld+json">{"a":}</script>', 1, 41, E, "Expecting value"),
    ],
    "shell": [
        ("if true; then\n  echo a\n", 2, 3, E, "unexpected end of file"),
        ("echo a\n  fi\n", 2, 3, E, "near unexpected token `fi'"),
        ('é=1\necho "abc\n', 2, 6, E, "looking for matching `\"'"),
        ("cat <<EOF\nabc\n", 2, 1, W, "here-document at line 1"),
        ("x=$(ls\n", 1, 4, E, None),
    ],
    "markdown": [("---\ntitle: a: b\n---\n# Text\n", 2, 9, E, "mapping values"), ("+++\na =\n+++\n", 2, 4, E, None)],
}  # fmt: skip

HOSTILE: dict[str, Callable[[int], str]] = {
    "opening brackets": lambda n: "(" * n,
    "nested lists": lambda n: "[" * n + "]" * n,
    "nested objects": lambda n: '{"a":' * n,
    "tags": lambda n: "<a>" * n,
    "closed tags": lambda n: "<a>" * n + "</a>" * n,
    "operators": lambda n: "-" * n + "1",
    "sums": lambda n: "1+" * n + "1",
    "dots": lambda n: "a." * n + "a=1",
    "comments": lambda n: "/*" * n,
    "markup comments": lambda n: "<!--" * n,
    "quotes": lambda n: "\"'" * n,
    "substitutions": lambda n: "$(" * n,
    "templates": lambda n: "`${" * n,
    "conditions": lambda n: "a extends b?c:" * n,
    "list items": lambda n: "- " * n,
    "declarations": lambda n: "a{b:c}" * n,
    "commas": lambda n: "[" + "a," * n,
    "blank lines": lambda n: "\n" * n,
    "one line": lambda n: "a" * (8 * n),
    "long string": lambda n: '"' + "a" * (8 * n) + '"',
    "functions": lambda n: "def f(a):\n  return a\n" * (n // 3),
    "front matter": lambda n: "---\n" + "[" * n + "\n---\n",
}


SCRIPTS = ["javascript", "typescript", "tsx", "json5"]


def _hostile() -> list[tuple[str, str]]:
    """Every shape in every language, but for the dialects of JavaScript, which one program reads."""
    few = ["nested lists", "closed tags", "comments", "one line"]
    return [
        (language, shape)
        for language in NAMES
        for shape in HOSTILE
        if language not in ("tsx", "json5", "typescript") or shape in few
    ]


def _first(name: str, text: str) -> Finding:
    found = validate(name, text)
    assert found.findings, found
    return found.findings[0]


@pytest.mark.parametrize("language", list(NAMES))
def test_a_good_file_has_no_findings(language: str) -> None:
    assert validate(NAMES[language], GOOD[language]) == Validation(language)


@pytest.mark.parametrize("language", list(NAMES))
def test_a_good_file_with_windows_line_endings_and_a_mark_of_its_encoding_has_no_findings_either(language: str) -> None:
    text = "\ufeff" + GOOD[language].replace("\n", "\r\n")
    if language == "shell":
        text = "\ufeff" + GOOD[language]  # a shell does not read them
    assert validate(NAMES[language], text).findings == ()


@pytest.mark.parametrize(
    ("language", "text", "line", "column", "severity", "message"),
    [(language, *case) for language, cases in BAD.items() for case in cases],
)
def test_a_bad_file_has_a_finding_where_it_goes_wrong(
    language: str, text: str, line: int, column: int, severity: Severity, message: str | None
) -> None:
    finding = _first(NAMES[language], text)
    assert (finding.line, finding.column, finding.severity) == (line, column, severity), finding
    assert finding.message
    assert message is None or message in finding.message


@pytest.mark.parametrize("language", [name for name in NAMES if name != "shell"])  # a shell does not read them
def test_windows_line_endings_and_a_mark_of_the_encoding_do_not_move_a_finding(language: str) -> None:
    for text, line, column, severity, _ in BAD[language]:
        if text.endswith("\n") and line > text.count("\n"):  # at the very end, what the lines end with counts
            continue
        finding = _first(NAMES[language], "\ufeff" + text.replace("\n", "\r\n"))
        assert (finding.line, finding.column, finding.severity) == (line, column, severity), text


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("src/A.PY", "", "python"),
        ("a.pyi", "", "python"),
        ("bin/tool", "#!/usr/bin/env python3\n", "python"),
        ("bin/tool", "#!/bin/sh\n", "shell"),
        ("bin/tool", "#!/usr/bin/env -S node --x\n", "javascript"),
        ("bin/tool", "#!/usr/bin/perl\n", None),
        ("bin/tool", "text", None),
        ("a.sh", "#!/bin/zsh\n", None),
        (".bashrc", "", "shell"),
        ("a.ipynb", "{}", "json"),
        ("tsconfig.base.json", "{}", "jsonc"),
        ("x/.vscode/settings.json", "{}", "jsonc"),
        ("package.json", "{}", "json"),
        ("a.jsx", "", "javascript"),
        ("a.d.ts", "", "typescript"),
        ("qt_de.ts", "<?xml version='1.0'?><TS/>", "xml"),
        ("Cargo.lock", "", "toml"),
        ("a.txt", "", None),
        ("a.scss", "", None),
        ("", "", None),
    ],
)
def test_the_name_or_the_first_line_tells_the_language(name: str, text: str, language: str | None) -> None:
    assert validate(name, text) == Validation(language)


def test_a_finding_is_written_as_an_object_of_its_fields() -> None:
    assert _first("a.json", "{").to_json("a.json") == {
        "file": "a.json",
        "line": 1,
        "column": 2,
        "severity": "error",
        "message": "Expecting property name enclosed in double quotes",
    }
    assert _first("a.yaml", "a: 1\na: 2").to_json("a.yaml")["rule"] == "yaml:key"


@pytest.mark.parametrize("language", list(NAMES))
def test_a_file_that_is_too_big_is_not_checked_and_the_reason_is_given(language: str) -> None:
    for text in (")" * (MAX_BYTES + 1), "é" * (MAX_BYTES // 2 + 1)):
        assert validate(NAMES[language], text) == Validation(language, (), "it is bigger than 1024 KiB")


@pytest.mark.parametrize("language", list(NAMES))
def test_a_nul_is_a_finding_and_half_characters_harm_nobody(language: str) -> None:
    finding = _first(NAMES[language], "é\n \0")
    assert (finding.line, finding.column) == (2, 2)
    found = validate(NAMES[language], GOOD[language] + "\udcff \ud800")
    assert found.skipped is None
    for finding in found.findings:
        finding.message.encode()


@pytest.mark.parametrize(("language", "shape"), _hostile())
def test_a_file_made_to_harm_is_done_with_in_time(language: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.tools.validation.program.MAX_SECONDS", MAX_SECONDS)
    text = HOSTILE[shape](100_000)[:MAX_BYTES]
    with bounded_work():
        found = validate(NAMES[language], text)
    assert len(found.findings) <= MAX_FINDINGS
    assert all(len(finding.message) <= 250 for finding in found.findings)


def test_aliases_and_entities_are_never_expanded() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    tracemalloc.start()
    assert validate("a.yaml", bomb) == Validation("yaml")
    laughs = '<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><a>&d;</a>'
    assert "declares entities" in (validate("a.xml", laughs).skipped or "")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.yaml", "a: {{ .Values.x }}\n{{- if .b }}\nc: d\n{{- end }}\n", "template"),
        ("a.html", "{% if a %}<div>{% endif %}", "template"),
        ("a.js", "// @flow\nconst a = (b: c) => d;\n", "Flow"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", "1" * 5000, "digits"),
        ("a.py", "-" * 100_000 + "1", "nested too deeply"),
        ("a.toml", "a." * 100_000 + "b = 1", "too many parts"),
        ("a.toml", "a = " + "[" * 100_000, "nested too deeply"),
        ("a.yaml", "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_checked_is_skipped_with_the_reason(name: str, text: str, why: str) -> None:
    found = validate(name, text)
    assert found.findings == ()
    assert why in (found.skipped or "")


def test_no_more_findings_are_given_than_a_reader_can_use() -> None:
    assert len(validate("a.css", "}\n" * 1000).findings) == MAX_FINDINGS
    assert len(validate("a.yaml", "a: 1\n" * 1000).findings) == MAX_FINDINGS
    assert len(validate("a.js", "x = };\n" * 1000).findings) == MAX_FINDINGS


@pytest.mark.requirement("validate:status")
@pytest.mark.parametrize("language", list(NAMES))
def test_a_checkpoint_that_ends_the_call_ends_the_check_and_nothing_else(language: str) -> None:
    def stop() -> None:
        raise Failure(ErrorCode.TIMEOUT, "Write did not finish in time.")

    assert validate(NAMES[language], BAD[language][0][0], stop) == Validation(
        language, (), "Write did not finish in time."
    )


def test_a_check_that_is_ended_keeps_what_it_has_found() -> None:
    calls = iter([None, Failure(ErrorCode.TIMEOUT, "late")])

    def second_time() -> None:
        failure = next(calls)
        if failure:
            raise failure

    found = validate("a.css", "}\n" + "a{}\n" * 1000, second_time)
    assert (len(found.findings), found.skipped) == (1, "late")


def test_a_missing_bash_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.tools.validation.program._PLACES", "/nowhere")
    assert validate("a.sh", "fi").skipped == "there is no bash here"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os; os.abort()", "its checker crashed"),
        ("import nowhere", "its checker failed: .*No module named 'nowhere'"),
        ("print('[]')", r"the checker failed \(ValueError\)"),
        ("print('{')", r"the checker failed \(JSONDecodeError\)"),
        ("while True: pass", "needed more than 0.3 s"),
    ],
)
def test_a_reader_of_scripts_that_crashes_fails_or_hangs_takes_nothing_with_it(
    code: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = tmp_path / "reader.py"
    reader.write_text(code)
    monkeypatch.setattr("toolyard.tools.validation.program._READER", reader)
    monkeypatch.setattr("toolyard.tools.validation.program.MAX_SECONDS", 0.3 if "while" in code else 60.0)
    assert re.search(why, validate("a.js", "").skipped or "", re.DOTALL)


def test_a_grammar_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by fuzzing tree-sitter-typescript 0.23.2: in our own process it would hold all threads, for ever."""
    monkeypatch.setattr("toolyard.tools.validation.program.MAX_SECONDS", MAX_SECONDS)
    found = validate("a.tsx", "'\np<a>([t)e()\n}")
    assert found.findings or found.skipped == f"its checker needed more than {MAX_SECONDS:g} s"


def test_a_program_that_checks_is_killed_when_its_call_ends() -> None:
    calls = iter([None, None, Failure(ErrorCode.TIMEOUT, "late")])

    def third_time() -> None:
        failure = next(calls)
        if failure:
            raise failure

    assert validate("a.js", "a extends b?c:" * 70_000, third_time).skipped == "late"  # it would take a minute


def test_a_checker_that_breaks_spoils_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.tools.validation.css._MARK", None)
    assert validate("a.css", "a {}") == Validation("css", (), "the checker failed (AttributeError)")


def test_the_same_script_is_judged_the_same_in_a_page() -> None:
    script = "const a = <b>1 & 2</b>;\nfunction f( {\n"
    alone = _first("a.js", script)
    page = _first("a.html", f"<p>\n</p> <script>{script}</script>")
    assert (page.line, page.message) == (alone.line + 1, alone.message)


PIECES = st.sampled_from(
    [*"{}[]()<>\"'`\\/*-=:;,.#@!$%&|?+~^\n\t ", "\r\n", "---\n", "<!--", "-->", "/*", "*/", "</", "/>", "${", "$(", "é",
     "中", "\u2028", "\x0b", "\udc80", "url(", "def f", "if ", "then", "fi", "<script>", "</script>", "<style>", "*a"]
)  # fmt: skip
TEXTS = st.text(max_size=200) | st.lists(PIECES | st.text(max_size=5), max_size=60).map("".join)


def _is_sound(found: Validation, text: str) -> bool:
    lines = text.count("\n") + 1
    for finding in found.findings:
        finding.message.encode()
    return "failed" not in (found.skipped or "") and all(
        1 <= finding.line <= lines and finding.column >= 1 for finding in found.findings
    )


@settings(max_examples=60)
@pytest.mark.parametrize("language", [name for name in NAMES if name not in SCRIPTS])
@given(text=TEXTS)
def test_no_text_makes_a_checker_raise(language: str, text: str) -> None:
    assert _is_sound(validate(NAMES[language], text), text)


@settings(max_examples=5)
@pytest.mark.parametrize("language", SCRIPTS)
@given(texts=st.lists(TEXTS, min_size=30, max_size=30))
def test_no_script_makes_its_checker_raise(language: str, texts: list[str]) -> None:
    """Many at once: each check of a script starts a process."""
    whole = "\n".join(texts)
    assert _is_sound(validate(NAMES[language], whole), whole)
    texts = [text.encode(errors="replace").decode() for text in texts]
    grammar = Language.JAVASCRIPT if language == "json5" else Language(language)
    assert len(check_all(texts, grammar, lambda: None)) == len(texts)
