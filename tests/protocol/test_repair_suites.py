"""The tolerant reader against the suites of two JSON repair libraries, and against replies with one right answer.

``vectors/reply_repairs.json`` holds every input of the tests of json_repair (Python) and jsonrepair (JavaScript) that
they have an output for, with that output. Inputs that are in both stand once; for two of them (``True``, ``False``) the
libraries disagree, and the output that says the same is kept. An output that is no object is compared with what ours
reads as the value of a key. Nothing is hidden: what ours reads differently is in ``DIFFERENT``, with the reason.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from toolyard.protocol.replies.lenient_json import Reader
from toolyard.protocol.reply import Reply, parse_reply

pytestmark = pytest.mark.requirement("reply:lenient", "reply:repaired")
SUITES: list[tuple[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors/reply_repairs.json").read_text("utf-8")
)

DIFFERENT: dict[str, list[str]] = {
    "Several values: a reply is one object, and the first is read. What to do with the others is for ``find``.": [
        '{"key":"value"}[1,2,3,True]',
        '{"key":"value"}, {"key":"value_after"}',
        'lorem ```json {"key":"value"} ``` ipsum ```json [1,2,3,True] ``` 42',
        '[{"key":"value"}][{"key":"value_after"}]',
        '{"key": "value"}, ["abc"]',
        "1\n2",
        "/* 1 */\n{}\n\n/* 2 */\n{}\n\n/* 3 */\n{}\n",
        "/* 1 */\n{},\n\n/* 2 */\n{},\n\n/* 3 */\n{}\n",
        "/* 1 */\n{},\n\n/* 2 */\n{},\n\n/* 3 */\n{},\n",
        "1,2,3",
        "1,2,3,",
        "1\n2\n3",
        "a\nb",
        "a,b",
    ],
    "A fence or words before the value: ``find`` passes over them, not the reader.": [
        "\n        Here is the tuple payload:\n\n        ```json\n        (1, 2)\n        ```\n        ",
        "callback_123([]);",
        "```\n[1,2,3]\n```",
        '{```\n{"a":"b"}\n```}',
        '{```json\n{"a":"b"}\n```}',
    ],
    "A text with no value in it: the library gives an empty text, ours nothing.": [
        "}",
        "\n",
        " ",
        "]",
    ],
    "The library takes a lone word or sign for no JSON; ours reads what it says.": [
        "string",
        "'\"'",
        "Null",
        "/",
    ],
    "The line end before the last quote belongs to the text: the library cuts it off.": [
        '{\n"a": "\n```{}```\n",\n"b": "x",\n}',
        '{\n"a": "\n```{}```\n"\n",\n"b": "x",\n}',
        '{\n"a": "\n```{}```\n"\n",\n\'b\': "x",\n}',
        '{\n"a": "\n```{}```\n"\n", // c\n"b": "x",\n}',
        '{"a":"x}``` [1,2]\n","b":"y"}',
        '{"a":"x}``` [http://x]\n","b":"y"}',
        '{"a":"x}``` [foo[bar]\n","b":"y"}',
        '{"a":"x}``` [{\n","b":"y"}',
        '{"a":"x}``` [foo, [bar]\n","b":"y"}',
        '{"a":"x}``` [1,"z"]\n","b":"y"}',
        '{"a":"x}``` [1, [2]]\n","b":"y"}',
        '{"a":"x}``` [1,[2],k:v]\n","b":"y"}',
        '{"a":"x}``` (1,(2),k:v)\n","b":"y"}',
        '{"a":"x}``` [1,2],\n","b":"y"}',
        '{"a":"x}``` // c\n [1,2]\n","b":"y"}',
        '{"a":"x}``` // c\n [1,2],\n","b":"y"}',
        '{\n"a": "\n```c\nint main() {\n}\n```\nImplementation: "xxx", xxx\n",\n"b": "x",\n}',
    ],
    "Quotes inside the text that nobody can tell from its end: ours takes another one, nothing is lost.": [
        '{"key": "v"alue"}',
        '{ "a" : "{ b": {} }" }',
        '[{"lorem": {"ipsum": "sic"}, """" "lorem": {"ipsum": "sic"}]',
        '{\n"a": "\n```{}```\n"\n",\n b: "x",\n}',
        '{"a": "hello\n"\n",}',
        '{"a": "hello\n"\n",',
        '{"x": "a, {"k": 1}, "y": 2}',
        '{"x": "a, {"k": {"n": 1}}, "y": 2}',
        '{"key": ["lorem "ipsum" dolor "sit" amet, "consectetur" ", "lorem "ipsum" dolor", "lorem"]}',
        '{"k"e"y": "value"}',
        '["value1" value2", "value3"]',
        '{"bad_one":["Lorem Ipsum", "consectetur" comment" ], "good_one":[ "elit", "sed", "tempor"]}',
        '"The TV is 72""',
        '"the set {a, b"} more"',
        "`foo'",
    ],
    "A comma in a text whose quote is lost: it is a comma of the text, not of the list.": [
        '["https://www.bible.com/,2]',
        '["hello, world]',
        '["hello,"world"]',
        '["b,c,]',
        '["abc,/*comment*/"def"]',
    ],
    "A plus or a comment inside an unclosed text is text.": [
        '["abc+/*comment*/"def"]',
        '["abc/*comment*/+"def"]',
        '"hello" + /*comment*/ " world"',
        '"hello +\n " world"',
        '"hello +',
        '["hello +]',
    ],
    "What has not come is left out: the library makes it null, zero or a list.": [
        "[{]",
        '["',
        '[{"key": "value", "key',
        '{"foo":',
        '{"foo"',
        '{"foo',
        '{"s \\ud',
        '{"a":',
        "-",
        ".",
        '{"a":-',
        "[-,",
    ],
    "A key without a value is null: the library makes it an empty text.": [
        '{"key": , "key2": "value2"}',
        '{"key": "value"}, "key2": }',
    ],
    "Parentheses are text: a reply is no Python.": [
        '("a", "b", "c")',
        "((1, 2), (3, 4))",
        '{"coords": (1, 2), "ok": true}',
        '{"empty": ()}',
        "(1)",
        '("x")',
        '{"scalar_group": (1)}',
        '{"string_group": ("x")}',
        '/foo"; console.log(-1); "/',
    ],
    "An unknown escape keeps its backslash: it is LaTeX or a path. A backslash before a line end joins the lines.": [
        '{"text": "a \\„ b", "y": 1}',
        '"\\a"',
        '"first\\\nsecond"',
    ],
    "A text with all its quotes escaped: ``unescaped`` decodes it first.": [
        '\\"hello world\\"',
        '\\"hello world\\',
        '\\"hello \\\\"world\\\\"\\"',
        '[\\"hello \\\\"world\\\\"\\"]',
        '{\\"stringified\\": \\"hello \\\\"world\\\\"\\"}',
        '[\\"hello\\, \\"world\\"]',
        '\\"hello"',
    ],
    "Escapes on several levels at once: no right answer.": [
        '{"key": "{\\\\"key\\\\\\":[\\"value\\\\\\"],\\"key2\\":"value2"}"}',
    ],
    "No list, no object: a text in a set, a stray list or number where a key is expected is left out and said so.": [
        '{ "key": ["arrayvalue"], "key3": "value3", ["arrayvalue1"] }',
        "{'key1', 'key2'}",
        '{"key", 105,12,',
    ],
    "A string stays a string, and a key keeps its characters.": [
        '{"" key":"val"',
        '{"key_1\n": "value"}',
        '{"key": "```json {"key": [{"key1": 1},{"key2": 2}]}```"}',
    ],
    "Words without quotes are one text as far as the comma or the line goes.": [
        "[2 0.0.1 2]",
        "/[a-z]_/",
    ],
    "Several faults at one place: ours reads the part that is sure.": [
        '{"key": "value"}, "key2" "value2"}',
        (
            '{"headers": ["A", "B", "C"], "rows": [["r1a", "r1b", "r1c"], ["r2a", "r2b", "r2c"], "r3a", "r3b", "r3c"], '
            '["r4a", "r4b", "r4c"], ["r5a", "r5b", "r5c"]]}'
        ),
    ],
    "The output was recorded through JavaScript's numbers; ours is exact.": [
        '{"key": 12345678901234567890}',
    ],
    "On one line a comment ends at the next bracket: else it would hide the rest.": [
        '{ "key": { "key2": "value2" // comment }, "key3": "value3" }',
    ],
}
REASONS = {text: reason for reason, texts in DIFFERENT.items() for text in texts}


def ours(text: str, expected: object) -> object:
    if isinstance(expected, dict):
        return Reader(text).read(text.index("{")).value
    return Reader('{"value": ' + text).read(0).value.get("value")


@pytest.mark.parametrize(("text", "expected"), [case for case in SUITES if case[0] not in REASONS])
def test_what_two_repair_libraries_mend_is_mended_alike(text: str, expected: object) -> None:
    assert ours(text, expected) == expected


@pytest.mark.parametrize(("text", "expected"), [case for case in SUITES if case[0] in REASONS])
def test_every_difference_is_one_still(text: str, expected: object) -> None:
    assert ours(text, expected) != expected, REASONS[text]


def test_the_table_is_whole() -> None:
    """Of the cases whose output is an object, as a reply is, five in six are read alike; the rest is in the table."""
    objects = [text for text, expected in SUITES if isinstance(expected, dict)]
    assert REASONS.keys() <= {text for text, _ in SUITES}
    assert (len(SUITES), len(objects)) == (629, 343)
    assert sum(text not in REASONS for text in objects) >= 290


CODE = {"type": "code", "content": "1", "language": "py"}
A = json.dumps({"a": CODE})
WITH_A = {"content": "c", "attachments": {"a": CODE}}
UNAMBIGUOUS: list[tuple[str, dict[str, Any]]] = [
    ('{"content": "c"}', {"content": "c"}),
    ('  \n{"content": "c"}\n  ', {"content": "c"}),
    ('\ufeff{"content": "c"}', {"content": "c"}),
    ('{"content": "c", "think": null, "attachments": {}}', {"content": "c"}),
    (f'{{"content": "c", "attachments": {A}}}', WITH_A),
    ('{"content": "\\u4f60\\u597d \\ud83d\\ude00 \\/ \\"q\\""}', {"content": '你好 😀 / "q"'}),
    ('{"content": "a", "extra": [1, {"b": null}]}', {"content": "a"}),
    ('{"Content": "c", "THINK": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "a", "content": "b"}', {"content": "b"}),
    (f'{{"CONTENT": "c", "Attachments": {A.replace("type", "Type")}}}', WITH_A),
    ('{"content": "c", }', {"content": "c"}),
    (f'{{"content": "c", "attachments": {A.replace("}}", ",},}")},}}', WITH_A),
    ('{"content": "c",, "think": "t"}', {"content": "c", "think": "t"}),
    ('// note\n{"content": "c"}', {"content": "c"}),
    ('/* note */ {"content": "c"}', {"content": "c"}),
    ('{"content": "c" // note\n}', {"content": "c"}),
    ('{"content": "c"// note\n}', {"content": "c"}),
    ('{"content": "c", /* note, "think": "no" */ "think": "t"}', {"content": "c", "think": "t"}),
    ('{ // note\n"content": "http://a/b // c"}', {"content": "http://a/b // c"}),
    ('{"content": "a /* b */ # c"}', {"content": "a /* b */ # c"}),
    ('```json\n{"content": "c"}\n```', {"content": "c"}),
    ('```\n{"content": "c"}\n```', {"content": "c"}),
    ('~~~json\n{"content": "c"}\n~~~', {"content": "c"}),
    ('````json\n{"content": "```py\\n1\\n```"}\n````', {"content": "```py\n1\n```"}),
    ('```json\n{"content": "```py\\n1\\n```"}\n```', {"content": "```py\n1\n```"}),
    ('```json\n{"content": "c"}', {"content": "c"}),
    ('```json {"content": "c"} ```', {"content": "c"}),
    ('Sure:\n\n```json\n{"content": "c"}\n```\n\nBye {x}.', {"content": "c"}),
    ('Here: {"content": "c"}', {"content": "c"}),
    ('{"content": "c"}\nIs "that" all?', {"content": "c"}),
    ('<think>hm {"content": "no"}</think>{"content": "c"}', {"content": "c", "think": 'hm {"content": "no"}'}),
    ('<THINKING>\nhm\n</THINKING>\n{"content": "c"}', {"content": "c", "think": "hm"}),
    ('<think\n>hm</think\n>{"content": "c"}', {"content": "c", "think": "hm"}),
    ('hm</think>{"content": "c"}', {"content": "c", "think": "hm"}),
    ('{"think": "t"}\n{"content": "c"}', {"content": "c", "think": "t"}),
    ('{"content": "c"}\n{"think": "t"}', {"content": "c", "think": "t"}),
    ('[{"content": "c"}]', {"content": "c"}),
    ('{"response": {"content": "c", "think": "t"}}', {"content": "c", "think": "t"}),
    (json.dumps('{"content": "c"}'), {"content": "c"}),
    ('{\\"content\\": \\"c\\"}', {"content": "c"}),
    ("{'content': 'c', 'think': 't'}", {"content": "c", "think": "t"}),
    ("{'content': 'it\\'s'}", {"content": "it's"}),
    ("{'content': 'say \"hi\"'}", {"content": 'say "hi"'}),
    ("{'content': \"it's\", 'think': None}", {"content": "it's"}),
    ("{“content”: “c”}", {"content": "c"}),
    ("{‘content’: ‘c’}", {"content": "c"}),
    ("{`content`: `c`}", {"content": "c"}),
    ('{content: "c", think: "t"}', {"content": "c", "think": "t"}),
    ('{content: "c"\nthink: "t"}', {"content": "c", "think": "t"}),
    ('{"content": c}', {"content": "c"}),
    ('{"content": "c", "n": True, "m": None, "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "c", "n": undefined, "m": NaN, "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "a\nb\tc"}', {"content": "a\nb\tc"}),
    ('{"content": """a "b" c"""}', {"content": 'a "b" c'}),
    ("{'content': '''a 'b' c'''}", {"content": "a 'b' c"}),
    ('{"content": "he said "hi" to me"}', {"content": 'he said "hi" to me'}),
    ('{"content": "she said "yes".", "think": "t"}', {"content": 'she said "yes".', "think": "t"}),
    ('{"content": "she said "yes""}', {"content": 'she said "yes"'}),
    ('{"content": "she said "yes"", "think": "t"}', {"content": 'she said "yes"', "think": "t"}),
    ('{"content": "a, "b", "c", and "d"!", "think": "t"}', {"content": 'a, "b", "c", and "d"!', "think": "t"}),
    ('{"content": "你好，"世界"，再见", "think": "想"}', {"content": '你好，"世界"，再见', "think": "想"}),
    ("{'content': 'don't', 'think': 'it's'}", {"content": "don't", "think": "it's"}),
    ('{"content": "<a href="x">y</a>"}', {"content": '<a href="x">y</a>'}),
    ('{"content": "c" "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "c"\n"think": "t"}', {"content": "c", "think": "t"}),
    ('{"content" "c"}', {"content": "c"}),
    ('{"content" = "c"}', {"content": "c"}),
    ('{"content"："c"，"think"："t"}', {"content": "c", "think": "t"}),
    ('｛"content"："c"｝', {"content": "c"}),
    ('{"content": "c}', {"content": "c"}),
    ('{"content: "c"}', {"content": "c"}),
    ('{content": "c"}', {"content": "c"}),
    ('{"content": c", "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "c, "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "c" garbage}', {"content": "c"}),
    ('{"content": "c" oops, "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "c", oops "think": "t"}', {"content": "c", "think": "t"}),
    ('"content": "c", "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "c"}}', {"content": "c"}),
    ('{"content": "c", "list": [1, 2}', {"content": "c"}),
    ('{"content": "c"; "think": "t"}', {"content": "c", "think": "t"}),
    ('{"content": "a" + "b"}', {"content": "ab"}),
    ('{"content": "$\\frac{1}{2} \\times \\alpha \\neq b$"}', {"content": r"$\frac{1}{2} \times \alpha \neq b$"}),
    ('{"content": "C:\\Windows\\System32"}', {"content": "C:\\Windows\\System32"}),
    ('{"content": "c", "think": "t', {"content": "c", "think": "t"}),
    ('{"content": "half a sen', {"content": "half a sen"}),
    (f'{{"content": "c", "attachments": {A[:-1]}', WITH_A),
    ('{"content": "c", "thi', {"content": "c"}),
    ('{"content": "c",', {"content": "c"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), UNAMBIGUOUS)
def test_a_reply_with_one_right_answer_is_read_right(text: str, expected: dict[str, Any]) -> None:
    reply = parse_reply(text)
    assert isinstance(reply, Reply), reply
    found = reply.to_dict()
    assert {key: found[key] for key in ("content", "think", "attachments")} == {
        "think": None,
        "attachments": {},
        **expected,
    }


@pytest.mark.requirement("reply:truncated")
@pytest.mark.parametrize("text", [text for text, _ in UNAMBIGUOUS])
def test_each_of_them_may_end_anywhere(text: str) -> None:
    for end in range(len(text)):
        reply = parse_reply(text[:end])
        assert isinstance(reply, Reply) or reply.raw == text[:end]
