"""Masking: secrets are removed from what is echoed."""

import base64
import itertools
import json
import re
from urllib.parse import quote, quote_plus, urlencode

import pytest

from toolyard.protocol.json import Json
from toolyard.protocol.mask import MASK, Mask
from toolyard.protocol.records.approval_record import HiddenText

pytestmark = pytest.mark.requirement("envelope:context:params-masked")


def test_a_known_secret_is_masked_wherever_it_stands() -> None:
    mask = Mask(["hunter2-long", "hunter2-long-er"])
    assert mask.json({"a": ["x hunter2-long-er y", {"hunter2-long": "hunter2-long"}]}) == {
        "a": [f"x {MASK} y", {MASK: MASK}]
    }


@pytest.mark.requirement("s:S-91")
def test_names_are_masked_too_none_is_lost_and_what_comes_back_is_as_it_was_stored() -> None:
    mask = Mask(["hunter2-long", "other-secret"])
    stored: Json = {"hunter2-long": 1, "a other-secret b": {"other-secret": "x"}, "other-secret": [2], "plain": "y"}
    shown = mask.json(stored)
    assert shown == {MASK: 1, f"a {MASK} b": {MASK: "x"}, f"{MASK} 2": [2], "plain": "y"}
    assert list(shown) == [MASK, f"a {MASK} b", f"{MASK} 2", "plain"]
    assert mask.mask_known(stored) == mask.log_json(stored) == mask.describe(stored)[0] == shown
    assert mask.restore(shown, stored) == stored


@pytest.mark.requirement("s:S-91")
@pytest.mark.parametrize("secret", ["s3cr3t+key/with=signs", "pässwörd 123", "plainword", "sk-123"])
def test_a_known_secret_is_masked_as_urls_and_base64_write_it_too(secret: str) -> None:
    mask, raw = Mask([secret]), secret.encode()
    urls = [quote(secret, safe=""), quote(secret), quote_plus(secret), urlencode({"key": secret}).partition("=")[2]]
    urls += [re.sub("%..", lambda code: code[0].lower(), url) for url in urls]
    for url in urls:
        assert mask.text(f"https://example.com/?key={url}&b=1") == f"https://example.com/?key={MASK}&b=1"
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before, after in itertools.product(("", "u", "me", "you", "user:"), ("", "x", "yz", "\nend")):
            text = encode(before.encode() + raw + after.encode()).decode()
            masked = mask.text(f"Authorization: Basic {text}")
            assert MASK in masked
            left = masked.replace(MASK, "").removeprefix("Authorization: Basic ")
            assert len(left) <= -(-len(before) * 4 // 3) + -(-len(after) * 4 // 3) + 6


@pytest.mark.parametrize("secret", ['pass"word\\1', "密码是 9x7", "line-1\nline-2", "a/b/c/d/e", "tab\there"])
def test_a_known_secret_is_masked_as_json_writes_it_too(secret: str) -> None:
    mask = Mask([secret])
    plain = json.dumps({"said": secret}, ensure_ascii=False)
    for text in (plain, json.dumps({"said": secret}), json.dumps(plain), plain.replace("/", "\\/")):
        assert json.dumps(secret)[1:-1] not in mask.text(text)
        assert MASK in mask.text(text)
    assert json.loads(mask.text(plain)) == {"said": MASK}


@pytest.mark.parametrize("others", [0, 100])
@pytest.mark.parametrize("length", [10, 100_000])
def test_a_known_secret_is_masked_in_texts_of_any_length_among_few_secrets_and_many(length: int, others: int) -> None:
    mask = Mask(["hunter2-long", *(f"other-secret-{number}" for number in range(others))])
    text = "word " * (length // 5)
    assert mask.text(text) == text
    assert mask.text(f"{text}hunter2-long{text}") == f"{text}{MASK}{text}"


def test_a_secret_too_short_to_be_told_from_words_is_not_searched_for() -> None:
    assert Mask(["pass", ""]).text("bypass the pass") == "bypass the pass"


@pytest.mark.parametrize(
    "name",
    ["password", "Password", "tool_password", "db-password", "apiKey", "api_key", "API_KEY", "accessToken", "secret",
     "client_secret", "Authorization", "private_key", "credentials"],
)  # fmt: skip
def test_texts_under_names_that_only_secrets_have_are_masked(name: str) -> None:
    assert Mask().json({name: "abc"}) == {name: MASK}


@pytest.mark.parametrize(
    "name", ["path", "maxTokens", "max_tokens", "tokenizer", "passenger", "secretary", "keyword", "author"]
)
def test_ordinary_names_are_left_alone(name: str) -> None:
    assert Mask().json({name: "abc"}) == {name: "abc"}


@pytest.mark.requirement("s:S-98")
def test_for_people_who_decide_a_mask_tells_where_and_how_much_it_hides() -> None:
    mask = Mask(["sk-12345678"])
    value: Json = {
        "access_token": "rm -rf /", "text": "a sk-12345678 b sk-12345678", "list": [{"a/b~c": {"password": "x"}}],
        "password": "", "token": 5, "plain": "x",
    }  # fmt: skip
    described, hidden = mask.describe(value)
    assert described == {
        "access_token": "[masked, 8 characters]", "text": "a [masked, 11 characters] b [masked, 11 characters]",
        "list": [{"a/b~c": {"password": "[masked, 1 characters]"}}], "password": "", "token": 5, "plain": "x",
    }  # fmt: skip
    assert hidden == [
        HiddenText(at="/access_token", characters=8),
        HiddenText(at="/text", characters=22),
        HiddenText(at="/list/0/a~1b~0c/password", characters=1),
    ]


def test_numbers_are_never_secrets() -> None:
    assert Mask().json({"token": 5, "secret": None}) == {"token": 5, "secret": None}


@pytest.mark.requirement("s:S-91")
def test_known_secrets_go_out_of_a_value_and_names_alone_hide_nothing() -> None:
    mask = Mask()
    value: Json = {"token": "harmless", "list": ["has sk-12345678 in it"]}
    assert mask.mask_known(value) is value
    mask.add(["sk-12345678", "no"])
    assert mask.mask_known(value) == {"token": "harmless", "list": ["has [masked] in it"]}


@pytest.mark.requirement("s:S-91")
def test_what_comes_back_as_it_was_shown_is_as_it_was_stored() -> None:
    mask = Mask(["hunter2-long"])
    stored: dict[str, Json] = {
        "url": "https://x/?k=hunter2-long",
        "api_key": "abc",
        "n": [{"token": "t1"}, 2],
        "same": "x",
    }
    shown = mask.json(stored)
    assert mask.restore(shown, stored) == stored
    assert isinstance(shown, dict)
    changed: dict[str, Json] = {**shown, "same": "y", "n": [{"token": "new"}, 2]}
    expected: dict[str, Json] = {**stored, "same": "y", "n": [{"token": "new"}, 2]}
    assert mask.restore(changed, stored) == expected
    assert mask.restore({"api_key": "[masked]"}, {"other": 1}) == {"api_key": "[masked]"}
