"""FileOperator: its names, its batches, and the commands only VCP's front end knows (vcp D1, D6, D8)."""

from pathlib import Path

import pytest

from tests.tools.operating import Operator, data, error_of
from tests.workspace.test_arranger import tree
from tests.workspace.vectors import put
from toolyard.protocol.envelope import Status

# --- Names, commands, parameters ---


@pytest.mark.requirement("fileoperator:names")
@pytest.mark.parametrize("tool", ["FileOperator", "ServerFileOperator"])
@pytest.mark.parametrize("name", ["path", "filePath", "FILEPATH", "file_path", "directoryPath", "searchPath"])
async def test_it_answers_to_both_names_and_to_every_name_of_a_parameter(
    project: Path, op: Operator, tool: str, name: str
) -> None:
    put(project, {"a.txt": "hello"})
    _, outcome = await op.settle({"command": "ReadFile", name: "a.txt"}, tool)
    assert data(outcome.envelope)["content"] == "hello"


@pytest.mark.requirement("fileoperator:names")
@pytest.mark.parametrize(("source", "destination"), [("source", "destination"), ("SourcePath", "destinationpath")])
async def test_both_ends_of_a_move_have_two_names(project: Path, op: Operator, source: str, destination: str) -> None:
    put(project, {"a.txt": "a"})
    data(await op("MoveFile", **{source: "a.txt", destination: str(project / "b.txt")}))
    assert tree(project) == {"b.txt": "a"}


@pytest.mark.requirement("fileoperator:unknown")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("Explode", "Unknown action: Explode"),
        ("readfile", "Unknown action: readfile"),
        ("Rm\n-rf \x1b[2J\u202e", "Unknown action: Rm\\n-rf \\x1b[2J\\u202e"),
        ("x" * 500, "Unknown action: " + "x" * 100),
        ("__init__", "Unknown action: __init__"),
    ],
)
async def test_another_command_is_an_unknown_action(op: Operator, command: str, message: str) -> None:
    envelope = await op(command)
    assert envelope.error is not None
    assert (envelope.error.code.value, envelope.error.message) == ("INVALID_PARAM", message)
    assert (await op.vcp(command=command))["error"] == message


@pytest.mark.requirement("fileoperator:input")
@pytest.mark.parametrize(
    ("command", "given", "missing"),
    [
        ("ReadFile", {}, "'filePath'"),
        ("WriteFile", {"filePath": "a"}, "'content'"),
        ("WriteFile", {}, "'filePath' and 'content'"),
        ("AppendFile", {"filePath": "a"}, "'content'"),
        ("EditFile", {"filePath": "a"}, "'content'"),
        ("ApplyDiff", {"filePath": "a"}, "'searchString' and 'replaceString'"),
        ("ApplyDiff", {"filePath": "a", "searchString": "x"}, "'replaceString'"),
        ("ListDirectory", {}, "'directoryPath'"),
        ("SearchFiles", {"searchPath": "."}, "'pattern'"),
        ("CopyFile", {"sourcePath": "a"}, "'destinationPath'"),
        ("MoveFile", {}, "'sourcePath' and 'destinationPath'"),
        ("DeleteFile", {}, "'filePath'"),
        ("CreateDirectory", {}, "'directoryPath'"),
        ("CreateCanvas", {"content": "x"}, "'fileName'"),
        ("UpdateHistory", {"filePath": "h", "searchString": "x"}, "'replaceString'"),
        ("DownloadFile", {}, "'url'"),
        ("WebReadFile", {}, "'url'"),
    ],
)
async def test_a_missing_parameter_is_named(op: Operator, command: str, given: dict[str, str], missing: str) -> None:
    """D8: VCP says "Cannot read properties of undefined"."""
    envelope = await op(command, **given)
    assert error_of(envelope)[0] == "INVALID_PARAM"
    assert missing in envelope.text


@pytest.mark.requirement("fileoperator:input")
async def test_a_request_of_200_kb_works(project: Path, op: Operator) -> None:
    """D1: VCP fails on any request over 64 KiB."""
    content = "a line of text, 你好\n" * 8000
    envelope = await op("WriteFile", filePath="big.txt", content=content)
    assert (envelope.status, (project / "big.txt").read_text()) == (Status.SUCCESS, content)
    assert (await op("EditFile", filePath="big.txt", content=content.upper())).status is Status.SUCCESS
    assert (project / "big.txt").read_text() == content.upper()


# --- History and canvas ---

HISTORY = """[
  {"role": "user", "content": "old words"},
  {"role": "assistant", "content": [{"type": "text", "text": "old words"}]},
  {"role" : "assistant", "content" : "say old words \\u4f60\\n", "extra": 1.50},
  {"role": "assistant", "content": "again old words"}
]
"""


@pytest.mark.requirement("fileoperator:history-canvas")
async def test_only_the_message_of_the_assistant_changes(project: Path, op: Operator) -> None:
    put(project, {"h.json": HISTORY})
    envelope = await op("UpdateHistory", filePath="h.json", searchString="old words", replaceString='"new" $& 好\n')
    assert data(envelope)["message_index"] == 2
    after = HISTORY.replace("say old words \\u4f60\\n", 'say \\"new\\" $& \\u597d\\n \\u4f60\\n')
    assert tree(project) == {"h.json": after}


@pytest.mark.requirement("fileoperator:history-canvas", "write:bytes-outside")
@pytest.mark.parametrize(
    ("before", "search", "replace", "after"),
    [
        (r"a\/b \u0041 old \t\u0009", "old", "new", r"a\/b \u0041 new \t\u0009"),
        (r"\/old\u0041", "/oldA", "x", "x"),
        (r"\ud83d\ude00 old \ud83d \uD83D\uDE00", "old", "好", r"\ud83d\ude00 \u597d \ud83d \uD83D\uDE00"),
        (r"😀 \"old\" \u0041", '"old"', "好\\", r"😀 好\\ \u0041"),
        (r"one\r\nold\r\n", "old", "1\n2", r"one\r\n1\r\n2\r\n"),
    ],
)
async def test_the_rest_of_a_message_keeps_its_escapes(
    project: Path, op: Operator, before: str, search: str, replace: str, after: str
) -> None:
    put(project, {"h.json": f'[{{"role": "assistant", "content": "{before}"}}]'})
    data(await op("UpdateHistory", filePath="h.json", searchString=search, replaceString=replace))
    assert tree(project) == {"h.json": f'[{{"role": "assistant", "content": "{after}"}}]'}


@pytest.mark.requirement("fileoperator:history-canvas")
@pytest.mark.parametrize(
    ("content", "search", "code"),
    [
        (HISTORY, "missing", "INVALID_PARAM"),
        (HISTORY, "", "INVALID_PARAM"),
        ('[{"role": "assistant", "content": "a a"}]', "a", "INVALID_PARAM"),
        ('{"role": "assistant", "content": "a"}', "a", "INVALID_PARAM"),
        ("[]", "a", "INVALID_PARAM"),
        ("not json", "a", "INVALID_PARAM"),
        ("[" * 100_000, "a", "INVALID_PARAM"),
    ],
)
async def test_a_history_that_does_not_fit_stays_as_it_is(
    project: Path, op: Operator, content: str, search: str, code: str
) -> None:
    put(project, {"h.json": content})
    envelope = await op("UpdateHistory", filePath="h.json", searchString=search, replaceString="x")
    assert (error_of(envelope)[0], tree(project)) == (code, {"h.json": content})
    assert error_of(await op("UpdateHistory", filePath="no", searchString="a", replaceString="b"))[0] == "NOT_FOUND"


@pytest.mark.requirement("fileoperator:history-canvas", "dialect:vcp:action")
async def test_a_canvas_is_made_and_the_front_end_is_asked_to_open_it(project: Path, op: Operator) -> None:
    await op("CreateCanvas", fileName="a.js", content="first")
    message = await op.vcp(command="CreateCanvas", fileName="a.js", content="let x = 1;\n")
    assert (message["status"], message["_specialAction"]) == ("success", "create_canvas")
    assert message["payload"] == {"filePath": str(project / "canvas/a(1).js")}
    assert (project / "canvas/a(1).js").read_text() == "let x = 1;\n"
    for name in ("../a.js", "sub/a.js", ".."):
        assert error_of(await op("CreateCanvas", fileName=name, content="x"))[0] == "INVALID_PARAM"


# --- Batches ---


@pytest.mark.requirement("fileoperator:batch", "dialect:vcp:batch:reads", "dialect:vcp:batch:writes")
async def test_a_batch_has_its_writes_in_one_text_and_then_what_was_read(project: Path, op: Operator) -> None:
    """000 §2.3 and 001 §4.2."""
    put(project, {"docs/report.txt": "the report\n"})
    message = await op.vcp(
        command1="ListDirectory",
        directoryPath1="docs",
        command2="WriteFile",
        filePath2="new.txt",
        content2="x",
        command3="ReadFile",
        filePath3="docs/report.txt",
        command4="DeleteFile",
        filePath4="missing.txt",
        command5="CopyFile",
        sourcePath5="new.txt",
        destinationPath5="copy.txt",
    )
    texts = [part["text"] for part in message["result"]["content"]]
    assert message["status"] == "success"
    assert texts[0].split("\n")[:2] == ["Batch Operations Summary:", "- Created 'new.txt' (1 Bytes)."]
    assert texts[0].split("\n")[2].startswith("- 'missing.txt' does not exist.")
    assert texts[0].split("\n")[3:] == ["- Copied 'new.txt' to 'copy.txt'."]
    assert texts[1] == "Directory listing of 'docs' (1 item)."
    assert texts[3:] == ["Read 'docs/report.txt' (11 Bytes).", "the report\n"]
    assert [item["item"] for item in message["result"]["details"]["failed_items"]] == ["4"]


@pytest.mark.requirement("fileoperator:batch")
async def test_later_commands_see_what_earlier_ones_did(project: Path, op: Operator) -> None:
    envelope = await op.batch(
        command1="WriteFile",
        filePath1="a.txt",
        content1="one",
        command2="AppendFile",
        filePath2="a.txt",
        content2=" two",
        command3="MoveFile",
        sourcePath3="a.txt",
        destinationPath3="b.txt",
        command4="ReadFile",
        filePath4="b.txt",
    )
    assert envelope.status is Status.SUCCESS
    assert data(envelope)["results"][3]["content"] == "one two"


@pytest.mark.requirement("fileoperator:batch")
async def test_a_batch_that_failed_entirely_is_an_error(op: Operator) -> None:
    """D6: VCP says success even then."""
    arguments = {"command1": "ReadFile", "filePath1": "a", "command2": "Explode"}
    assert error_of(await op.batch(**arguments))[0] == "NOT_FOUND"
    message = await op.vcp(**arguments)
    assert message["status"] == "error"
    assert "Unknown action: Explode" in message["result"]["content"][0]["text"]
