"""Calls, outcomes and specs survive the way to another host unchanged."""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.message import Message, add_hint
from toolyard.protocol.content import Blob, Link, Media, Part, Text
from toolyard.protocol.envelope import Envelope, ErrorCode, Extras, Fault, Status, is_partial
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.remote_call import call_from_text, call_to_text, outcome_from_text, outcome_to_text
from toolyard.protocol.tool import (
    BatchItem,
    CommandForm,
    Course,
    Origin,
    Outcome,
    Risk,
    ToolCall,
    ToolCommand,
    ToolSpec,
    spec_from_text,
    spec_to_text,
)

pytestmark = pytest.mark.requirement("hosts:shared")

texts = st.text(st.characters(codec="utf-8"), max_size=20)
values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects: st.SearchStrategy[JsonObject] = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1), values, max_size=4
)
calls = st.builds(
    ToolCall, id=texts, tool=texts, arguments=objects, maid=st.none() | texts, caller=texts,
    origin=st.sampled_from(Origin), timeout_s=st.none() | st.floats(0, 1e6), force=st.booleans(), approved=texts,
    avoids_protected=st.booleans(),
    metadata=objects, chat=texts, retry_of=texts,
)  # fmt: skip
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, st.text(max_size=20)),
    st.builds(Media, st.sampled_from(["image/png", "audio/mpeg"]), st.binary(max_size=40), texts),
    st.builds(Link, texts, kind=st.sampled_from(["image", "video"])),
    st.builds(Blob, texts, data=st.binary(max_size=40), name=texts),
)
extras = st.builds(
    Extras, parts=st.lists(parts, max_size=3).map(tuple), action=st.none() | texts, payload=st.none() | values,
    note=texts, content_key=st.sampled_from(["", "content"]), details=st.none() | objects,
    before=st.none() | st.text(max_size=20), after=st.none() | st.text(max_size=20), reads=st.none() | st.booleans(),
)  # fmt: skip


@st.composite
def envelopes(draw: st.DrawFn) -> Envelope:
    data = {key: value for key, value in draw(objects).items() if key not in ("truncated", "applied", "failed_items")}
    fault = draw(st.none() | st.builds(Fault, st.sampled_from(ErrorCode), texts.filter(bool)))
    good = Status.PARTIAL if is_partial(data) else draw(st.sampled_from([Status.SUCCESS, Status.PARTIAL]))
    return Envelope(
        status=Status.ERROR if fault else good,
        data=data,
        text=draw(texts.filter(lambda text: bool(text.strip()))),
        error=fault,
        stats={"time_ms": draw(st.floats(0, 1e9)), "files": draw(st.integers(0, 2**70))},
        context={"cwd": ".", "params_input": draw(values)},
    )


courses = st.builds(
    Course, ran=st.none() | st.floats(0, 1e10), waited_ms=st.floats(0, 1e9), process=st.none() | objects
)
plain = st.builds(Outcome, envelope=envelopes(), root=texts, arguments=objects, extras=extras, course=courses)
items = st.builds(BatchItem, call=calls, outcome=plain, reads=st.booleans())
outcomes = st.builds(
    Outcome, envelope=envelopes(), root=texts, arguments=objects, extras=extras,
    batch=st.lists(items, max_size=2).map(tuple), course=courses,
)  # fmt: skip
by_language = st.dictionaries(texts, texts, max_size=2)
commands = st.builds(
    ToolCommand, name=texts, description=by_language, parameters=st.dictionaries(texts, by_language, max_size=2),
    required=st.lists(texts, max_size=2).map(tuple), example=texts,
)  # fmt: skip
forms = st.builds(
    CommandForm, name=texts, display_name=texts, description=texts, parameters=objects,
    examples=st.lists(objects, max_size=2).map(tuple),
)  # fmt: skip
specs = st.builds(
    ToolSpec, display_name=texts, forms=st.lists(forms, max_size=2).map(tuple),
    name=texts, description=texts, parameters=objects, synonyms=st.dictionaries(texts, texts, max_size=2),
    aliases=st.lists(texts, max_size=2).map(tuple), risk=st.sampled_from(Risk),
    reading_commands=st.lists(texts, max_size=2).map(tuple), fingerprint=texts, timeout_s=st.floats(0, 1e6),
    splits_batches=st.booleans(), verbatim=st.booleans(), idempotent=st.booleans(),
    commands=st.lists(commands, max_size=2).map(tuple), batch_example=texts, at_once=st.integers(0, 100),
)  # fmt: skip


@given(calls)
def test_a_call_comes_back_as_it_was(call: ToolCall) -> None:
    assert call_from_text(call_to_text(call)) == call


@given(outcomes)
def test_an_outcome_comes_back_as_it_was_with_its_media_and_its_batch(outcome: Outcome) -> None:
    text = outcome_to_text(outcome)
    assert text.isascii()
    assert outcome_from_text(text) == outcome


def test_a_part_comes_back_with_the_item_it_was_read_from_and_the_place_of_its_bytes() -> None:
    written: list[Part] = [
        Text("a", original="a"),
        Link("http://a", original={"type": "image_url", "image_url": {"url": "http://a"}}),
        Blob("?", data=b"x", source="tool-output/media_1.bin", original={"type": "x"}),
        Media("image/png", b"x", source="tool-output/media_1.png", original={"name": "x"}),
    ]
    known: JsonObject = {"cwd": ".", "params_input": {}}
    envelope = Envelope(status=Status.SUCCESS, data={}, text="Done.", stats={"time_ms": 0}, context=known)
    attached = Media("image/gif", b"y", source="tool-output/media_2.gif")
    outcome = Outcome(envelope=envelope, root="/", extras=Extras(parts=tuple(written), attached=(attached,)))
    read = outcome_from_text(outcome_to_text(outcome)).extras
    assert [repr(part) for part in read.parts] == [repr(part) for part in written]
    assert [part.original for part in read.parts] == [part.original for part in written]
    assert [repr(part) for part in read.attached] == [repr(attached)]


@given(specs)
def test_a_spec_comes_back_as_it_was(spec: ToolSpec) -> None:
    read = spec_from_text(spec_to_text(spec))
    assert {name: getattr(read, name) for name in ToolSpec.__dataclass_fields__} == {
        name: getattr(spec, name) for name in ToolSpec.__dataclass_fields__
    }


NEW = ("forms", "display_name")
FORM = CommandForm(name="Go", display_name="Go there", parameters={"type": "object"}, examples=({"command": "Go"},))


@pytest.mark.requirement("hosts:forms")
def test_a_spec_of_a_newer_host_is_read_without_what_this_one_does_not_know() -> None:
    spec = ToolSpec(name="Echo", description="Echoes.", parameters={"type": "object"}, forms=(FORM,))
    newer = spec_to_text(spec).replace("{", '{"invented_later": [1],', 1)
    newer = newer.replace('"forms":[{', '"forms":[{"invented_later":[1],', 1)
    assert spec_from_text(newer).name == "Echo"
    assert spec_from_text(newer).forms == (FORM,)


@pytest.mark.requirement("hosts:forms")
def test_a_spec_of_the_version_before_has_no_forms_of_its_commands() -> None:
    spec = ToolSpec(name="Echo", description="Echoes.", parameters={"type": "object"}, forms=(FORM,), display_name="E")
    older = {name: value for name, value in json.loads(spec_to_text(spec)).items() if name not in NEW}
    read = spec_from_text(json.dumps(older))
    assert (read.name, read.forms, read.display_name) == ("Echo", (), "")


@pytest.mark.requirement("messages:codes", "hosts:shared")
def test_the_code_of_a_text_comes_back_in_an_envelope_that_the_version_before_can_read() -> None:
    known: JsonObject = {"cwd": ".", "params_input": {}}
    listed = Message("Listed {entries} in '{path}'.", entries="1 entry", path=".")
    missing = Message("'{path}' does not exist.", path="a")
    hint = Message("Check the path.")
    for status, text, error in (
        (Status.SUCCESS, listed, None),
        (Status.ERROR, add_hint(missing, hint), Fault(ErrorCode.NOT_FOUND, missing)),
    ):
        envelope = Envelope(status=status, data={}, text=text, error=error, stats={"time_ms": 0}, context=known)
        written = outcome_to_text(Outcome(envelope=envelope, root="/"))
        read = outcome_from_text(written).envelope
        assert read == envelope
        assert read.to_json() == envelope.to_json()
        assert envelope.to_json() != envelope.to_dict()
        error_keys = set(json.loads(written)["envelope"].get("error", {}))
        assert error_keys <= {"code", "message"}  # others an older host refuses
