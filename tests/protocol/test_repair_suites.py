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

from tests.protocol.unambiguous import UNAMBIGUOUS, fields_of
from toolyard.protocol.replies.lenient_json import Reader
from toolyard.protocol.replies.reply_values import Reply
from toolyard.protocol.reply import parse_reply

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


def test_every_difference_is_one_still() -> None:
    alike = [text for text, expected in SUITES if text in REASONS and ours(text, expected) == expected]
    assert alike == [], "these are read alike now: take them out of the table"


def test_the_table_is_whole() -> None:
    """Of the cases whose output is an object, as a reply is, five in six are read alike; the rest is in the table."""
    objects = [text for text, expected in SUITES if isinstance(expected, dict)]
    assert REASONS.keys() <= {text for text, _ in SUITES}
    assert (len(SUITES), len(objects)) == (629, 343)
    assert sum(text not in REASONS for text in objects) >= 290


@pytest.mark.parametrize(("text", "expected"), UNAMBIGUOUS)
def test_a_reply_with_one_right_answer_is_read_right(text: str, expected: dict[str, Any]) -> None:
    reply = parse_reply(text)
    assert isinstance(reply, Reply), reply
    assert fields_of(reply) == expected


@pytest.mark.requirement("reply:truncated")
@pytest.mark.parametrize("text", [text for text, _ in UNAMBIGUOUS])
def test_each_of_them_may_end_anywhere(text: str) -> None:
    for end in range(len(text)):
        reply = parse_reply(text[:end])
        assert isinstance(reply, Reply) or reply.raw == text[:end]
