"""The model provider of an installation, while the settings name none."""

from pathlib import Path

import pytest

from toolyard.config import load_config

pytestmark = pytest.mark.requirement("vcp:provider")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "API_URL", "API_Key"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_it_is_that_of_the_installation_until_a_setting_names_another(tmp_path: Path, tree: Path, home: Path) -> None:
    config = load_config(tmp_path, home, vcp=tree)
    assert (config.settings.upstream_url, config.settings.upstream_key) == (
        "http://provider.example", "sk-provider-secret"
    )  # fmt: skip
    (home / "config.toml").write_text('upstream_url = "http://mine.example/v1"\n')
    config = load_config(tmp_path, home, vcp=tree)
    assert (config.settings.upstream_url, config.settings.upstream_key) == ("http://mine.example/v1", None)


@pytest.mark.parametrize("lines", ["", "API_URL=http://provider.example\n", "API_URL=no address\nAPI_Key=sk-1\n",
                                   "API_URL=http://127.0.0.1:3000\nAPI_Key=YOUR_API_KEY_SUCH_AS_sk\n"])  # fmt: skip
def test_an_installation_without_a_usable_one_gives_none(tmp_path: Path, tree: Path, home: Path, lines: str) -> None:
    (tree / "config.env").write_text(lines)
    settings = load_config(tmp_path, home, vcp=tree).settings
    assert (settings.upstream_url, settings.upstream_key) == (None, None)
