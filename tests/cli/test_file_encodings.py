"""Settings and arguments in files as editors save them: with a mark in front, other line ends, another encoding."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from toolyard.cli import toolyard
from toolyard.config import load_config
from toolyard.errors import ConfigError, UsageError

MARK = b"\xef\xbb\xbf"
GBK = "中文".encode("gbk")


def run(project: Path, *words: str, stdin: bytes = b"") -> Result:
    common = ["--project", str(project), "--home", str(project.parent / "home")]
    return CliRunner().invoke(toolyard, [*common, *words], input=stdin)


@pytest.mark.requirement("cli:config:check")
def test_settings_may_begin_with_a_mark_and_have_the_line_ends_of_windows(project: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(MARK + b'port = 7001\r\ntime_zone = "Asia/Shanghai"\r\n')
    (tmp_path / "host.env").write_bytes(MARK + "VarUser=张三\r\n".encode())
    config = load_config(project, tmp_path)
    assert (config.settings.port, config.settings.time_zone, config.environ["VarUser"]) == (
        7001,
        "Asia/Shanghai",
        "张三",
    )
    assert load_config(project, tmp_path, text="\ufeffport = 7002").settings.port == 7002


@pytest.mark.requirement("cli:config:check")
@pytest.mark.parametrize("name", ["config.toml", "host.env"])
def test_settings_in_another_encoding_are_named_with_their_line(project: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"# one\n# " + GBK + b"\n")
    with pytest.raises(ConfigError, match=rf"{name}, line 2: this is not UTF-8: save the file in that encoding"):
        load_config(project, tmp_path)


@pytest.mark.requirement("cli:config:check")
def test_a_folder_in_the_place_of_the_settings_is_told(project: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match=r"config.toml: cannot be read: Is a directory$"):
        load_config(project, tmp_path)


@pytest.mark.requirement("cli:call:args")
def test_arguments_may_begin_with_a_mark(project: Path, tmp_path: Path) -> None:
    (project / "文 件.txt").write_text("text")
    given = MARK + json.dumps({"path": "文 件.txt"}, ensure_ascii=False).encode()
    (tmp_path / "args.json").write_bytes(given)
    for done in (run(project, "call", "Read", "--args", f"@{tmp_path}/args.json"),
                 run(project, "call", "Read", "--args", "-", stdin=given)):  # fmt: skip
        assert json.loads(done.stdout)["data"]["content"] == "1\ttext"


@pytest.mark.requirement("cli:call:args", "cli:exit:usage")
def test_arguments_that_cannot_be_read_are_told_with_the_reason(project: Path, tmp_path: Path) -> None:
    (tmp_path / "args.json").write_bytes(b'{"path": "' + GBK + b'"}')
    refused = [
        run(project, "call", "Read", "--args", f"@{tmp_path}/args.json").exception,
        run(project, "call", "Read", "--args", "-", stdin=GBK).exception,
        run(project, "call", "Read", "--args", f"@{tmp_path}/nowhere").exception,
    ]
    assert all(isinstance(one, UsageError) for one in refused)
    assert "args.json' is not valid UTF-8 (byte 11): save it as UTF-8" in str(refused[0])
    assert "the text on stdin is not valid UTF-8 (byte 1)" in str(refused[1])
    assert str(refused[2]).endswith("nowhere': No such file or directory")
