"""Messages: sentences that keep their code and parameters on the way to a client."""

import copy
import pickle

import pytest

from toolyard.errors import StorageError
from toolyard.message import MAX_PARAMETER, Message, from_fields, to_fields
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.call_record import KEPT, RESULT, CallResult
from toolyard.protocol.store import Record

READ_ONLY = Message("{place} is read-only", place="/data")


@pytest.mark.requirement("messages:codes")
def test_a_message_is_its_english_sentence_for_code_that_knows_only_strings() -> None:
    assert READ_ONLY == "/data is read-only"
    assert f"{READ_ONLY}!" == "/data is read-only!"


@pytest.mark.requirement("messages:codes")
def test_a_sentence_that_the_catalogue_lacks_is_its_own_code() -> None:
    fields = to_fields("fix", Message("{count} of a kind", count=3))
    assert fields == {"fix": "3 of a kind", "fix_code": "{count} of a kind", "fix_params": {"count": 3}}
    assert to_fields("fix", from_fields("fix", fields)) == fields


@pytest.mark.requirement("messages:codes")
def test_a_client_gets_the_sentence_its_code_and_its_parameters() -> None:
    assert to_fields("fix", READ_ONLY) == {
        "fix": "/data is read-only",
        "fix_code": "home.read_only",
        "fix_params": {"place": "/data"},
    }
    assert to_fields("fix", "words of the operating system") == {"fix": "words of the operating system"}


@pytest.mark.requirement("messages:codes")
def test_a_message_inside_a_message_keeps_its_own_code() -> None:
    outer = Message("{folder}: {problem} ({count})", folder="x", problem=READ_ONLY, count=3)
    fields = to_fields("message", outer)
    inner = {"text": "/data is read-only", "code": "home.read_only", "params": {"place": "/data"}}
    assert fields["message_params"] == {"folder": "x", "problem": inner, "count": 3}
    restored = from_fields("message", fields)
    assert to_fields("message", restored) == fields


@pytest.mark.requirement("messages:codes")
def test_an_error_raised_with_a_message_keeps_its_code_when_it_is_turned_into_text() -> None:
    text = str(StorageError(READ_ONLY))
    assert isinstance(text, Message)
    assert text.code == "home.read_only"


@pytest.mark.requirement("messages:codes")
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))])
def test_a_copy_of_a_message_is_the_same_message(duplicate: object) -> None:
    assert callable(duplicate)
    twin = duplicate(READ_ONLY)
    assert to_fields("message", twin) == to_fields("message", READ_ONLY)


@pytest.mark.requirement("messages:codes")
def test_masking_reaches_the_parameters_too() -> None:
    masked = READ_ONLY.map_text(lambda text: text.replace("data", "***"))
    assert to_fields("fix", masked) == {
        "fix": "/*** is read-only",
        "fix_code": "home.read_only",
        "fix_params": {"place": "/***"},
    }


@pytest.mark.requirement("messages:codes")
def test_a_parameter_on_the_wire_is_bounded() -> None:
    fields = to_fields("message", Message("{name}", name="x" * 10_000))
    assert fields["message_params"] == {"name": "x" * MAX_PARAMETER}


@pytest.mark.requirement("messages:codes", "envelope:error:strict")
def test_the_code_of_an_error_is_in_the_context_and_goes_there_and_back() -> None:
    codes = {"message_code": "home.read_only", "message_params": {"place": "/data"}}
    item = {"item": "1", "code": "NOT_FOUND", **to_fields("message", READ_ONLY)}
    value = {
        "status": "error",
        "data": {"failed_items": [item]},
        "text": "/data is read-only",
        "error": {"code": "PERMISSION_DENIED", "message": "/data is read-only"},
        "stats": {"time_ms": 1},
        "context": {"cwd": ".", "params_input": {}, **codes},
    }
    envelope = Envelope.from_dict(value)
    assert envelope.error is not None
    assert isinstance(envelope.error.message, Message)
    assert envelope.to_json() == value
    plain = envelope.to_dict()
    assert plain["context"] == {"cwd": ".", "params_input": {}}
    assert plain["data"] == {"failed_items": [{"item": "1", "code": "NOT_FOUND", "message": "/data is read-only"}]}


@pytest.mark.requirement("messages:codes", "envelope:error:strict")
def test_an_envelope_that_an_earlier_version_stored_is_read_in_the_form_of_today() -> None:
    earlier: JsonObject = {
        "status": "error",
        "data": {},
        "text": "/data is read-only",
        "error": {"code": "PERMISSION_DENIED", **to_fields("message", READ_ONLY)},
        "stats": {"time_ms": 1},
        "context": {"cwd": ".", "params_input": {}},
    }
    envelope = Envelope.from_dict(earlier)
    assert envelope.error is not None
    assert to_fields("message", envelope.error.message) == to_fields("message", READ_ONLY)
    body: JsonObject = {"arguments": {}, "envelope": earlier}
    stored = Record(kind=RESULT, id="call_1", state=KEPT, created=1.0, updated=1.0, body=body)
    assert CallResult.from_record(stored).envelope == envelope.to_json()
    assert envelope.to_json()["error"] == {"code": "PERMISSION_DENIED", "message": "/data is read-only"}


@pytest.mark.requirement("messages:codes")
def test_a_template_may_format_its_numbers() -> None:
    message = Message("{tool} did not finish within {seconds:g} s.", tool="LS", seconds=1.50)
    assert message == "LS did not finish within 1.5 s."
    assert message.params == {"tool": "LS", "seconds": 1.5}
