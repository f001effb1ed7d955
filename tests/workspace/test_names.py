"""File names as text: readable, valid in JSON, and found again as they were listed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.workspace.path_walk import find_same_name, to_text

NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: b"/" not in name and b"\0" not in name)
COMPOSED, DECOMPOSED = "caf\u00e9.txt".encode(), "cafe\u0301.txt".encode()


@pytest.mark.requirement("envelope:data-paths")
@pytest.mark.parametrize("name", ["a.txt", "名前.txt", "back\\slash", "new\nline", "\\x41", "😀"])
def test_a_name_in_utf8_is_itself(name: str) -> None:
    assert to_text(name.encode()) == name


@pytest.mark.requirement("envelope:data-paths")
def test_bytes_that_are_not_utf8_are_written_so_that_a_model_can_type_them() -> None:
    assert to_text(b"caf\xe9-\xff.txt") == r"caf\xe9-\xff.txt"


@pytest.mark.requirement("envelope:data-paths")
@given(name=NAMES)
def test_any_name_is_a_text_that_json_carries_and_leads_back_to_the_name(name: bytes) -> None:
    text = to_text(name)
    assert json.loads(json.dumps(text).encode()) == text
    assert text.encode() == name or find_same_name(text.encode(), [b"other", name]) == name


@pytest.mark.requirement("s:S-10")
@pytest.mark.parametrize(("written", "on_disk"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_names_compare_in_nfc(written: bytes, on_disk: bytes) -> None:
    assert find_same_name(written, [b"cafe.txt", on_disk]) == on_disk


@pytest.mark.requirement("s:S-10")
@pytest.mark.parametrize("other", ["Cafe\u0301.txt", "cafe.txt", "cafe\u0301.txt ", "ｃafé.txt"])
def test_names_that_only_look_alike_are_not_the_same(other: str) -> None:
    assert find_same_name(COMPOSED, [other.encode()]) is None


@pytest.mark.requirement("s:S-10")
def test_a_name_with_both_a_literal_escape_and_a_raw_byte_is_found() -> None:
    odd = b"\\xe9 and \xff"
    assert find_same_name(to_text(odd).encode(), [b"\xe9", odd]) == odd


@pytest.mark.requirement("s:S-10")
@given(name=NAMES.filter(lambda name: name.isascii() and b"\\x" not in name), others=st.lists(NAMES))
def test_a_plain_ascii_name_stands_only_for_itself(name: bytes, others: list[bytes]) -> None:
    assert find_same_name(name, others) is None
