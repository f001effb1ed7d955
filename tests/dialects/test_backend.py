"""The back-end dialect (seed 004)."""

import json
from typing import Any

import pytest

from tests.dialects.outcomes import ROOT, failed, outcome, write
from toolyard.dialects.backend_message import encode
from toolyard.protocol.content import Text
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.result_limits import Direction
from toolyard.protocol.tool import Outcome, ToolCall
from toolyard.protocol.truncation import StoredOutput, TextPages, cut_text, truncate_envelope

UUID = "550e8400-e29b-41d4-a716-446655440000"


def data_of(tool: str, result: Outcome) -> Any:
    return encode(ToolCall(id="toolu_1", tool=tool), result, uuid=UUID)["data"]


# --- The seed's examples: its JSON, and the call and outcome that lead to it ---

UPDATE_HUNK: JsonObject = {
    "oldStart": 1,
    "oldLines": 2,
    "newStart": 1,
    "newLines": 2,
    "lines": [" def hello():", "-    print('Hello, World!')", "+    print('Hello, Updated World!')"],
}
EDIT_HUNK: JsonObject = {
    "oldStart": 2,
    "oldLines": 1,
    "newStart": 2,
    "newLines": 1,
    "lines": ["-DEBUG = False", "+DEBUG = True"],
}
MULTI_HUNKS: list[Json] = [
    {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 2, "lines": [" import os", "+import sys"]},
    {
        "oldStart": 5,
        "oldLines": 1,
        "newStart": 6,
        "newLines": 1,
        "lines": ["-def process():", "+def process_data():"],
    },
]
APPENDIX_HUNK: JsonObject = json.loads("""
{
  "oldStart": 10,
  "oldLines": 3,
  "newStart": 10,
  "newLines": 4,
  "lines": [
    " def calculate(x):",
    "-    return x * 2",
    "+    # Updated calculation",
    "+    return x * 3",
    " "
  ]
}
""")

CREATED = outcome(
    "Created 'new_file.py'.",
    {"applied": True, "operation": "create", "hash": "ab", "structured_patch": [UPDATE_HUNK]},
    path="new_file.py",
    arguments={"path": "new_file.py", "content": "def hello():\n    print('Hello, World!')\n"},
    after="def hello():\n    print('Hello, World!')\n",
)
UPDATED = outcome(
    "Updated 'existing_file.py'.",
    {"applied": True, "operation": "update", "hash": "ab", "structured_patch": [UPDATE_HUNK]},
    path="existing_file.py",
    arguments={"path": "existing_file.py", "content": "def hello():\n    print('Hello, Updated World!')\n"},
    before="def hello():\n    print('Hello, World!')\n",
    after="def hello():\n    print('Hello, Updated World!')\n",
)


def edited(hunk: JsonObject) -> Outcome:
    return outcome(
        "Edited 'config.py'.",
        {"applied": True, "occurrences": 1, "hash": "ab", "strategy": "exact", "structured_patch": [hunk]},
        path="config.py",
        arguments={"path": "config.py", "old_string": "DEBUG = False", "new_string": "DEBUG = True"},
        before="# Configuration\nDEBUG = False\nPORT = 8000\n",
        after="# Configuration\nDEBUG = True\nPORT = 8000\n",
    )


EDITS: list[Json] = [
    {"old_string": "import os", "new_string": "import os\nimport sys", "replace_all": False},
    {"old_string": "def process():", "new_string": "def process_data():", "replace_all": False},
]
MULTI_EDITED = outcome(
    "Applied 2 edits.",
    {
        "applied": True,
        "edits_applied": [
            {
                "edit_index": 1,
                "success": True,
                "old_string": "import os",
                "new_string": "import os\nimport sys",
                "occurrences": 1,
            },
            {
                "edit_index": 2,
                "success": True,
                "old_string": "def process():",
                "new_string": "def process_data():",
                "occurrences": 1,
            },
        ],
        "total_edits": 2,
        "was_new_file": False,
        "summary": "2 edits",
        "structured_patch": MULTI_HUNKS,
    },
    path="utils.py",
    arguments={"path": "utils.py", "edits": EDITS},
    before="import os\n\n\n\ndef process():\n    pass\n",
    after="import os\nimport sys\n\n\n\ndef process_data():\n    pass\n",
)
MULTI_FAILED = failed(
    Failure(Reason.NOT_FOUND_IN_FILE, "Edit 2: the text is not in 'utils.py'.", data={"failed_edit": 2}),
    arguments={
        "path": "utils.py",
        "edits": [EDITS[0], {"old_string": "def process()", "new_string": "def process_data()"}],
    },
)


def cell_edited(data: JsonObject, **arguments: Json) -> Outcome:
    data = {"applied": True, "structured_patch": [], **data}
    return outcome("Edited a cell.", data, path="n.ipynb", arguments={"path": "n.ipynb", **arguments}, before="{}")


NOTEBOOK_SOURCE = "import pandas as pd\ndf = pd.read_csv('data.csv')\ndf.head()"
NOTEBOOK_FAILED = failed(
    Failure(ErrorCode.INVALID_PARAM, "Cell number is out of bounds. Notebook has 8 cells."),
    arguments={
        "path": "n.ipynb",
        "cell_number": 10,
        "new_source": "print('test')",
        "cell_type": "code",
        "edit_mode": "replace",
    },
)

EXAMPLES = {
    "§1 Replace creates": (
        "Write",
        CREATED,
        r"""
{
  "type": "backend_only",
  "tool_name": "Replace",
  "tool_use_id": "toolu_01ABC123",
  "uuid": "550e8400-e29b-41d4-a716-446655440000",
  "data": {
    "type": "create",
    "filePath": "/home/user/project/new_file.py",
    "content": "def hello():\n    print('Hello, World!')\n",
    "structuredPatch": []
  }
}
""",
    ),
    "§1 Replace updates": (
        "Write",
        UPDATED,
        r"""
{
  "type": "backend_only",
  "tool_name": "Replace",
  "tool_use_id": "toolu_01ABC124",
  "uuid": "550e8400-e29b-41d4-a716-446655440001",
  "data": {
    "type": "update",
    "filePath": "/home/user/project/existing_file.py",
    "content": "def hello():\n    print('Hello, Updated World!')\n",
    "structuredPatch": [
      {
        "oldStart": 1,
        "oldLines": 2,
        "newStart": 1,
        "newLines": 2,
        "lines": [
          " def hello():",
          "-    print('Hello, World!')",
          "+    print('Hello, Updated World!')"
        ]
      }
    ]
  }
}
""",
    ),
    "§2 Edit": (
        "Edit",
        edited(EDIT_HUNK),
        r"""
{
  "type": "backend_only",
  "tool_name": "Edit",
  "tool_use_id": "toolu_01ABC125",
  "uuid": "550e8400-e29b-41d4-a716-446655440002",
  "data": {
    "filePath": "/home/user/project/config.py",
    "oldString": "DEBUG = False",
    "newString": "DEBUG = True",
    "originalFile": "# Configuration\nDEBUG = False\nPORT = 8000\n",
    "structuredPatch": [
      {
        "oldStart": 2,
        "oldLines": 1,
        "newStart": 2,
        "newLines": 1,
        "lines": [
          "-DEBUG = False",
          "+DEBUG = True"
        ]
      }
    ]
  }
}
""",
    ),
    "§3 MultiEdit": (
        "MultiEdit",
        MULTI_EDITED,
        r"""
{
  "type": "backend_only",
  "tool_name": "MultiEdit",
  "tool_use_id": "toolu_01ABC126",
  "uuid": "550e8400-e29b-41d4-a716-446655440003",
  "data": {
    "filePath": "/home/user/project/utils.py",
    "wasNewFile": false,
    "editsApplied": [
      {
        "editIndex": 1,
        "success": true,
        "old_string": "import os",
        "new_string": "import os\nimport sys",
        "occurrences": 1
      },
      {
        "editIndex": 2,
        "success": true,
        "old_string": "def process():",
        "new_string": "def process_data():",
        "occurrences": 1
      }
    ],
    "totalEdits": 2,
    "summary": "Successfully applied 2 edits to utils.py",
    "structuredPatch": [
      {
        "oldStart": 1,
        "oldLines": 1,
        "newStart": 1,
        "newLines": 2,
        "lines": [
          " import os",
          "+import sys"
        ]
      },
      {
        "oldStart": 5,
        "oldLines": 1,
        "newStart": 6,
        "newLines": 1,
        "lines": [
          "-def process():",
          "+def process_data():"
        ]
      }
    ]
  }
}
""",
    ),
    "§3 MultiEdit fails": (
        "MultiEdit",
        MULTI_FAILED,
        r"""
{
  "type": "backend_only",
  "tool_name": "MultiEdit",
  "tool_use_id": "toolu_01ABC127",
  "uuid": "550e8400-e29b-41d4-a716-446655440004",
  "data": "Error in edit 2: String not found: def process()..."
}
""",
    ),
    "§4 NotebookEditCell replaces": (
        "NotebookEdit",
        cell_edited(
            {"cell_number": 3, "cell_type": "code", "language": "python"},
            cell_number=3,
            new_source=NOTEBOOK_SOURCE,
            edit_mode="replace",
        ),
        r"""
{
  "type": "backend_only",
  "tool_name": "NotebookEditCell",
  "tool_use_id": "toolu_01ABC128",
  "uuid": "550e8400-e29b-41d4-a716-446655440005",
  "data": {
    "cell_number": 3,
    "new_source": "import pandas as pd\ndf = pd.read_csv('data.csv')\ndf.head()",
    "cell_type": "code",
    "language": "python",
    "edit_mode": "replace"
  }
}
""",
    ),
    "§4 NotebookEditCell inserts": (
        "NotebookEdit",
        cell_edited(
            {"cell_number": 5, "cell_type": "markdown", "language": "python"},
            cell_number=5,
            new_source="# Data Visualization\nThis section contains plots and charts.",
            cell_type="markdown",
            edit_mode="insert",
        ),
        r"""
{
  "type": "backend_only",
  "tool_name": "NotebookEditCell",
  "tool_use_id": "toolu_01ABC129",
  "uuid": "550e8400-e29b-41d4-a716-446655440006",
  "data": {
    "cell_number": 5,
    "new_source": "# Data Visualization\nThis section contains plots and charts.",
    "cell_type": "markdown",
    "language": "python",
    "edit_mode": "insert"
  }
}
""",
    ),
    "§4 NotebookEditCell deletes": (
        "NotebookEdit",
        cell_edited({"cell_number": 2, "cell_type": "code", "language": "python"}, cell_number=2, edit_mode="delete"),
        r"""
{
  "type": "backend_only",
  "tool_name": "NotebookEditCell",
  "tool_use_id": "toolu_01ABC130",
  "uuid": "550e8400-e29b-41d4-a716-446655440007",
  "data": {
    "cell_number": 2,
    "new_source": "",
    "cell_type": "code",
    "language": "python",
    "edit_mode": "delete"
  }
}
""",
    ),
    "§4 NotebookEditCell fails": (
        "NotebookEdit",
        NOTEBOOK_FAILED,
        r"""
{
  "type": "backend_only",
  "tool_name": "NotebookEditCell",
  "tool_use_id": "toolu_01ABC131",
  "uuid": "550e8400-e29b-41d4-a716-446655440008",
  "data": {
    "cell_number": 10,
    "new_source": "print('test')",
    "cell_type": "code",
    "language": "python",
    "edit_mode": "replace",
    "error": "Cell number is out of bounds. Notebook has 8 cells."
  }
}
""",
    ),
}


@pytest.mark.requirement(
    "dialect:backend:seed-examples",
    "dialect:backend:base",
    "dialect:backend:names",
    "dialect:backend:file-path",
    "dialect:backend:replace-create",
    "dialect:backend:replace-update",
    "dialect:backend:edit",
    "dialect:backend:multiedit",
    "dialect:backend:multiedit-edit",
    "dialect:backend:multiedit-failure",
    "dialect:backend:notebook",
    "dialect:backend:notebook-failure",
)
@pytest.mark.parametrize(("tool", "result", "message"), EXAMPLES.values(), ids=EXAMPLES)
def test_the_seeds_example(tool: str, result: Outcome, message: str) -> None:
    """The examples of 004 with the seed's own hunks, so that they come out as they stand there."""
    expected = json.loads(message)
    call = ToolCall(id=expected["tool_use_id"], tool=tool)
    assert encode(call, result, uuid=expected["uuid"]) == expected


@pytest.mark.requirement("dialect:backend:seed-examples", "dialect:backend:edit", "hunk:shape")
def test_the_seeds_edit_has_the_context_lines_of_a_structured_patch() -> None:
    """004 §2 shows no context; hunks are those of ``structured_patch``, with three lines of it (docs/dialects.md)."""
    hunk: JsonObject = {
        "oldStart": 1,
        "oldLines": 3,
        "newStart": 1,
        "newLines": 3,
        "lines": [" # Configuration", "-DEBUG = False", "+DEBUG = True", " PORT = 8000"],
    }
    assert data_of("Edit", edited(hunk)) == {
        "filePath": "/home/user/project/config.py",
        "oldString": "DEBUG = False",
        "newString": "DEBUG = True",
        "originalFile": "# Configuration\nDEBUG = False\nPORT = 8000\n",
        "structuredPatch": [hunk],
    }


@pytest.mark.requirement("hunk:shape", "dialect:backend:seed-examples")
@pytest.mark.parametrize(
    ("tool", "result"), [("Write", UPDATED), ("Edit", edited(EDIT_HUNK)), ("MultiEdit", MULTI_EDITED)]
)
def test_a_hunk_keeps_its_five_names_and_its_lines_wherever_it_stands(tool: str, result: Outcome) -> None:
    """004 appendix; hunks keep these five names in every dialect (docs/dialects.md)."""
    patched = outcome(
        "Done.",
        result.envelope.data | {"structured_patch": [APPENDIX_HUNK]},
        path="a.py",
        arguments=result.arguments,
        before="x",
        after="y",
    )
    assert data_of(tool, patched)["structuredPatch"] == [
        {
            "oldStart": 10,
            "oldLines": 3,
            "newStart": 10,
            "newLines": 4,
            "lines": [
                " def calculate(x):",
                "-    return x * 2",
                "+    # Updated calculation",
                "+    return x * 3",
                " ",
            ],
        }
    ]


# --- Any tool ---


@pytest.mark.requirement("dialect:backend:base", "dialect:backend:other-tools")
@pytest.mark.parametrize("tool", ["LS", "Read", "Grep", "ApplyPatch", "FileOperator", "My-Plugin", "write"])
def test_any_other_tool_keeps_its_name_and_sends_its_data(tool: str) -> None:
    data: JsonObject = {"entries": [{"path": "a", "type": "file"}], "truncated": False, "applied": True}
    assert encode(ToolCall(id="toolu_1", tool=tool), outcome(data=data, parts=(Text("x"),)), uuid=UUID) == {
        "type": "backend_only",
        "tool_name": tool,
        "tool_use_id": "toolu_1",
        "uuid": UUID,
        "data": data,
    }


@pytest.mark.requirement("dialect:backend:other-tools")
@pytest.mark.parametrize("data", [{"applied": False, "files": []}, {"entries": [], "truncated": True}])
def test_any_other_tool_sends_its_data_unchanged_when_it_is_partial(data: JsonObject) -> None:
    assert data_of("ApplyPatch", outcome(data=data)) == data


@pytest.mark.requirement("dialect:backend:failure")
@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit", "LS", "Anything"])
@pytest.mark.parametrize("code", ErrorCode)
def test_any_other_failure_is_told_with_its_code_and_message(tool: str, code: ErrorCode) -> None:
    assert data_of(tool, failed(Failure(code, "It broke.", hint="Mend it."))) == f"Error: {code.value}: It broke."


# --- Replace, Edit ---


@pytest.mark.requirement("dialect:backend:file-path")
@pytest.mark.parametrize(
    ("tool", "result"), [("Write", UPDATED), ("Edit", edited(EDIT_HUNK)), ("MultiEdit", MULTI_EDITED)]
)
@pytest.mark.parametrize(("root", "expected"), [(ROOT, f"{ROOT}/src/a b.py"), ("/", "/src/a b.py")])
def test_a_file_path_is_absolute(tool: str, result: Outcome, root: str, expected: str) -> None:
    moved = outcome(
        "Done.",
        result.envelope.data,
        path="src/a b.py",
        arguments=result.arguments,
        before="x",
    )
    moved = Outcome(envelope=moved.envelope, root=root, arguments=moved.arguments, extras=moved.extras)
    assert data_of(tool, moved)["filePath"] == expected


@pytest.mark.requirement("dialect:backend:replace-update")
def test_emptying_a_file_is_an_update_with_empty_content() -> None:
    data: JsonObject = {"applied": True, "operation": "update", "structured_patch": [UPDATE_HUNK]}
    assert data_of("Write", outcome(data=data, path="a", before="x\n", after="")) == {
        "type": "update",
        "filePath": f"{ROOT}/a",
        "content": "",
        "structuredPatch": [UPDATE_HUNK],
    }


@pytest.mark.requirement("dialect:backend:edit")
def test_an_edit_that_creates_a_file_has_no_original_and_no_patch() -> None:
    """Contract §2: an empty old_string creates a missing file; §3: "a created file has ``structuredPatch: []``"."""
    created = outcome(
        data={"applied": True, "occurrences": 1, "structured_patch": [UPDATE_HUNK]},
        path="a",
        arguments={"path": "a", "old_string": "", "new_string": "x\n"},
        after="x\n",
    )
    assert data_of("Edit", created) == {
        "filePath": f"{ROOT}/a",
        "oldString": "",
        "newString": "x\n",
        "originalFile": "",
        "structuredPatch": [],
    }


@pytest.mark.requirement("dialect:backend:edit")
def test_an_edit_of_an_empty_file_has_its_patch() -> None:
    filled = outcome(
        data={"applied": True, "structured_patch": [UPDATE_HUNK]},
        path="a",
        arguments={"old_string": "", "new_string": "x\n"},
        before="",
    )
    assert (data_of("Edit", filled)["originalFile"], data_of("Edit", filled)["structuredPatch"]) == ("", [UPDATE_HUNK])


@pytest.mark.requirement("dialect:backend:replace-update", "dialect:backend:edit", "dialect:backend:multiedit")
@pytest.mark.parametrize(
    ("tool", "result"), [("Write", UPDATED), ("Edit", edited(EDIT_HUNK)), ("MultiEdit", MULTI_EDITED)]
)
def test_a_dry_run_does_not_pass_for_a_change(tool: str, result: Outcome) -> None:
    dry = outcome(
        "Nothing was written.",
        result.envelope.data | {"applied": False},
        path=str(result.envelope.context["path_resolved"]),
        arguments=result.arguments,
        before=result.extras.before,
        after=result.extras.after,
    )
    assert data_of(tool, dry) == data_of(tool, result) | {"dryRun": True}


# --- MultiEdit ---


def multi_edited(count: int, old: str, new: str, **changes: Any) -> Outcome:
    results: list[Json] = [
        {"edit_index": number, "success": True, "old_string": old, "new_string": new, "occurrences": 2}
        for number in range(1, count + 1)
    ]
    data: JsonObject = {
        "applied": True,
        "edits_applied": results,
        "total_edits": count,
        "was_new_file": False,
        "summary": "",
        "structured_patch": [UPDATE_HUNK],
    }
    return outcome("Done.", data | changes, path="src/utils.py", before="x")


@pytest.mark.requirement("dialect:backend:multiedit-edit")
@pytest.mark.parametrize(("length", "length_shown"), [(99, 99), (100, 100), (101, 100), (5000, 100)])
@pytest.mark.parametrize("letter", ["x", "中", "𝄞"])
def test_the_texts_of_an_edit_are_cut_to_100_characters(length: int, length_shown: int, letter: str) -> None:
    assert data_of("MultiEdit", multi_edited(1, letter * length, letter * length))["editsApplied"] == [
        {
            "editIndex": 1,
            "success": True,
            "old_string": letter * length_shown,
            "new_string": letter * length_shown,
            "occurrences": 2,
        }
    ]


@pytest.mark.requirement("dialect:backend:multiedit")
@pytest.mark.parametrize("count", [1, 2, 12])
def test_the_summary_counts_the_edits_and_names_the_file(count: int) -> None:
    data = data_of("MultiEdit", multi_edited(count, "a", "b"))
    assert (data["totalEdits"], data["summary"]) == (count, f"Successfully applied {count} edits to utils.py")
    assert [edit["editIndex"] for edit in data["editsApplied"]] == list(range(1, count + 1))


@pytest.mark.requirement("dialect:backend:multiedit")
def test_a_multi_edit_that_creates_a_file_says_so_and_has_no_patch() -> None:
    result = multi_edited(1, "", "x\n", was_new_file=True)
    created = outcome("Done.", result.envelope.data, path="src/utils.py", after="x\n")
    data = data_of("MultiEdit", created)
    assert (data["wasNewFile"], data["structuredPatch"]) == (True, [])


def multi_failed(cause: ErrorCode | Reason, edits: Json, number: Json = 1) -> Outcome:
    failure = Failure(cause, "It cannot be done.", data={"failed_edit": number})
    return failed(failure, arguments={"path": "a", "edits": edits})


@pytest.mark.requirement("dialect:backend:multiedit-failure")
@pytest.mark.parametrize(
    ("cause", "cause_text"),
    [
        (Reason.NOT_FOUND_IN_FILE, f"String not found: {'o' * 50}..."),
        (Reason.NOT_UNIQUE, f"String not unique: {'o' * 50}..."),
        (Reason.NO_CHANGE, f"No change: {'o' * 50}..."),
        (Reason.STALE, f"String not found: {'o' * 50}..."),
        (ErrorCode.PERMISSION_DENIED, "It cannot be done."),
    ],
)
def test_a_failed_multi_edit_names_the_edit_and_the_cause(cause: ErrorCode | Reason, cause_text: str) -> None:
    edits: list[Json] = [*EDITS, {"old_string": "o" * 51, "new_string": "b"}]
    assert data_of("MultiEdit", multi_failed(cause, edits, 3)) == f"Error in edit 3: {cause_text}"


@pytest.mark.requirement("dialect:backend:multiedit-failure")
@pytest.mark.parametrize(
    ("edits", "number"),
    [
        ('[{"old_string": "a"}]', 1),
        ([], 1),
        ([{"old_string": "a"}], 2),
        ([{"old_string": "a"}], 0),
        ([{}], 1),
        (["a"], 1),
        ([{"old_string": 5}], 1),
    ],
)
def test_a_failed_multi_edit_whose_edits_cannot_be_read_is_told_with_its_message(edits: Json, number: int) -> None:
    expected = f"Error in edit {number}: It cannot be done."
    assert data_of("MultiEdit", multi_failed(Reason.NOT_FOUND_IN_FILE, edits, number)) == expected


@pytest.mark.requirement("dialect:backend:multiedit-failure", "dialect:backend:failure")
def test_a_multi_edit_that_fails_before_its_first_edit_is_told_like_any_other() -> None:
    missing = failed(Failure(ErrorCode.NOT_FOUND, "'a' does not exist."), arguments={"path": "a"})
    assert data_of("MultiEdit", missing) == "Error: NOT_FOUND: 'a' does not exist."


# --- NotebookEditCell ---


@pytest.mark.requirement("dialect:backend:notebook")
def test_a_cell_found_by_its_id_is_told_by_its_number() -> None:
    result = cell_edited(
        {"cell_number": 4, "cell_type": "code", "language": "julia"}, cell_id="abc", new_source="x", edit_mode="replace"
    )
    assert data_of("NotebookEdit", result) == {
        "cell_number": 4,
        "new_source": "x",
        "cell_type": "code",
        "language": "julia",
        "edit_mode": "replace",
    }


@pytest.mark.requirement("dialect:backend:notebook-failure")
@pytest.mark.parametrize("arguments", [{}, {"new_source": None, "cell_type": None, "edit_mode": None}])
def test_a_failed_notebook_edit_has_all_its_fields_whatever_was_sent(arguments: JsonObject) -> None:
    result = failed(Failure(ErrorCode.NOT_FOUND, "'n.ipynb' does not exist."), arguments=arguments)
    assert data_of("NotebookEdit", result) == {
        "cell_number": None,
        "new_source": "",
        "cell_type": "code",
        "language": "python",
        "edit_mode": "replace",
        "error": "'n.ipynb' does not exist.",
    }


# --- Results of another form ---


@pytest.mark.requirement("dialect:backend:base", "dialect:backend:failure")
def test_a_batch_is_told_as_the_list_of_its_calls() -> None:
    refused = failed(Failure(ErrorCode.ACCESS_DENIED, "Outside."))
    batch = outcome("Batch.", {"results": []}, batch=(write(CREATED), write(UPDATED), write(refused)))
    assert encode(ToolCall(id="toolu_1", tool="Write"), batch, uuid=UUID) == {
        "type": "backend_only",
        "tool_name": "Replace",
        "tool_use_id": "toolu_1",
        "uuid": UUID,
        "data": [data_of("Write", CREATED), data_of("Write", UPDATED), "Error: ACCESS_DENIED: Outside."],
    }


@pytest.mark.requirement("dialect:backend:base", "truncation:before-dialects")
@pytest.mark.parametrize(
    ("tool", "result"), [("Write", UPDATED), ("Edit", edited(EDIT_HUNK)), ("MultiEdit", MULTI_EDITED)]
)
def test_a_shown_result_that_was_cut_is_told_as_it_is_shown(tool: str, result: Outcome) -> None:
    piece, pages = cut_text("x\n" * 3000, Direction.HEAD), TextPages("x\n" * 3000, 2001)
    stored = StoredOutput("tool-output/t.json", "tool-output/t.txt")
    short = truncate_envelope(result.envelope, piece, Direction.HEAD, stored=stored, pages=pages)
    cut_outcome = Outcome(envelope=short, root=ROOT, arguments=result.arguments, extras=result.extras)
    assert data_of(tool, cut_outcome) == short.data
