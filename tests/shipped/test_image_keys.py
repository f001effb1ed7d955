"""ImageGen never sends a key to another vendor: the vendors' own addresses, played by one server on loopback."""

from pathlib import Path
from typing import Any

import pytest

from tests.shipped.children import Asked, Reply, Said, run
from tests.shipped.test_image import INLINE
from tests.shipped.vendors import Vendors, playing_vendors

pytestmark = pytest.mark.requirement("shipped:image:keys")

OPENAI, VOLCENGINE, SILICONFLOW = "api.openai.com", "ark.cn-beijing.volces.com", "api.siliconflow.cn"
KEYS = {"OPENAI_API_KEY": OPENAI, "VOLCENGINE_API_KEY": VOLCENGINE, "SILICONFLOW_API_KEY": SILICONFLOW}
MODELS = {OPENAI: "gpt-image-1", VOLCENGINE: "doubao-seedream-3-0-t2i-250415", SILICONFLOW: "Kwai-Kolors/Kolors"}


def answer(_host: str, _request: Asked) -> Reply:
    return INLINE


def draw(vendors: Vendors, home: Path, settings: dict[str, str]) -> Said:
    return run("ImageGen", {"prompt": "cat"}, home, {**vendors.environment, "IMAGE_TIMEOUT_S": "20", **settings})


def hosts_that_got(vendors: Vendors) -> list[tuple[str, str, Any]]:
    """(host, authorization, model) of every request, on whatever path."""
    return [(host, one.headers["Authorization"], one.json["model"]) for host, one in vendors.drain()]


@pytest.mark.parametrize("key", KEYS)
def test_the_key_of_a_vendor_alone_means_its_address_and_its_model(key: str, tmp_path: Path) -> None:
    with playing_vendors(tmp_path, answer) as vendors:
        said = draw(vendors, tmp_path, {key: "sk-of-the-vendor"})
        assert said.code == 0, said.answer
        assert hosts_that_got(vendors) == [(KEYS[key], "Bearer sk-of-the-vendor", MODELS[KEYS[key]])]


@pytest.mark.parametrize(
    ("provider", "host"),
    [("openai", OPENAI), ("volcengine", VOLCENGINE), ("豆包", VOLCENGINE), ("siliconflow", SILICONFLOW)],
)
def test_with_the_keys_of_all_vendors_each_gets_its_own(provider: str, host: str, tmp_path: Path) -> None:
    settings = {"IMAGE_PROVIDER": provider, **{key: f"sk-for-{where}" for key, where in KEYS.items()}}
    with playing_vendors(tmp_path, answer) as vendors:
        said = draw(vendors, tmp_path, settings)
        assert said.code == 0, said.answer
        assert hosts_that_got(vendors) == [(host, f"Bearer sk-for-{host}", MODELS[host])]


@pytest.mark.parametrize("provider", ["openai", "volcengine", "siliconflow"])
@pytest.mark.parametrize("key", KEYS)
def test_a_vendor_without_a_key_gets_no_other_one(provider: str, key: str, tmp_path: Path) -> None:
    with playing_vendors(tmp_path, answer) as vendors:
        said = draw(vendors, tmp_path, {"IMAGE_PROVIDER": provider, key: "sk-of-another"})
        got = [host for host, _, _ in hosts_that_got(vendors)]
    if got:
        assert got == [KEYS[key]]
    else:
        assert key in said.answer["error"]
        assert provider in said.answer["error"]
    assert "sk-of-another" not in str(said.answer)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "base",
    [
        "https://api.example.com/v1",
        "https://api.openai.com.example.com/v1",
        "https://evil-volces.com/api/v3",
        "https://api.siliconflow.cn@example.com/v1",
        "http://{host}/v1",
        "https://[broken/v1",
    ],
)
def test_the_key_of_a_vendor_goes_to_no_other_address(key: str, base: str, tmp_path: Path) -> None:
    with playing_vendors(tmp_path, answer) as vendors:
        said = draw(vendors, tmp_path, {key: "sk-of-the-vendor", "IMAGE_API_BASE": base.format(host=KEYS[key])})
        assert vendors.drain() == []
    assert said.answer["status"] == "error"
    assert "IMAGE_API_BASE" in said.answer["error"]
    assert "IMAGE_API_KEY" in said.answer["error"]


def test_another_region_of_the_vendor_is_the_vendor(tmp_path: Path) -> None:
    settings = {"VOLCENGINE_API_KEY": "sk-v", "IMAGE_API_BASE": "https://ark.cn-shanghai.volces.com/api/v3"}
    with playing_vendors(tmp_path, answer) as vendors:
        assert draw(vendors, tmp_path, settings).code == 0
        assert [host for host, _, _ in hosts_that_got(vendors)] == ["ark.cn-shanghai.volces.com"]


def test_a_key_for_an_address_goes_there_and_is_asked_for_in_the_words_of_its_vendor(tmp_path: Path) -> None:
    with playing_vendors(tmp_path, answer) as vendors:
        compatible = {"IMAGE_API_KEY": "sk-own", "IMAGE_API_BASE": "https://images.example.com/v1", "IMAGE_MODEL": "m1"}
        assert draw(vendors, tmp_path, {**compatible, "VOLCENGINE_API_KEY": "sk-v"}).code == 0
        known = {"IMAGE_API_KEY": "sk-own", "IMAGE_API_BASE": f"https://{VOLCENGINE}/api/v3"}
        assert draw(vendors, tmp_path, known).code == 0
        assert hosts_that_got(vendors) == [
            ("images.example.com", "Bearer sk-own", "m1"),
            (VOLCENGINE, "Bearer sk-own", MODELS[VOLCENGINE]),
        ]


def test_a_provider_and_an_address_of_two_vendors_send_nothing(tmp_path: Path) -> None:
    settings = {
        "IMAGE_PROVIDER": "volcengine",
        "IMAGE_API_KEY": "sk-own",
        "IMAGE_API_BASE": "https://api.siliconflow.cn/v1",
    }
    with playing_vendors(tmp_path, answer) as vendors:
        said = draw(vendors, tmp_path, settings)
        assert vendors.drain() == []
    assert "siliconflow" in said.answer["error"]


def test_keys_of_two_vendors_need_a_choice(tmp_path: Path) -> None:
    with playing_vendors(tmp_path, answer) as vendors:
        said = draw(vendors, tmp_path, {"VOLCENGINE_API_KEY": "sk-v", "SILICONFLOW_API_KEY": "sk-s"})
        assert vendors.drain() == []
    assert "IMAGE_PROVIDER" in said.answer["error"]


def test_a_refused_key_is_told_by_its_name(tmp_path: Path) -> None:
    with playing_vendors(tmp_path, lambda _host, _request: Reply({"error": "no"}, 401)) as vendors:
        said = draw(vendors, tmp_path, {"VOLCENGINE_API_KEY": "sk-v"})
    assert "VOLCENGINE_API_KEY" in said.answer["error"]


def test_an_address_that_redirects_elsewhere_gets_no_second_request(tmp_path: Path) -> None:
    moved = Reply({}, 307, {"Location": f"https://{OPENAI}/v1/images/generations"})
    with playing_vendors(tmp_path, lambda _host, _request: moved) as vendors:
        assert draw(vendors, tmp_path, {"VOLCENGINE_API_KEY": "sk-v"}).code == 1
        assert [host for host, _, _ in hosts_that_got(vendors)] == [VOLCENGINE]
