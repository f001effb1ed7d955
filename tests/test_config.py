"""Settings: where they come from, and what is said when one is wrong."""

import json
from pathlib import Path

import pytest

from toolyard.config import load_config
from toolyard.errors import ConfigError, UsageError
from toolyard.message import Message, to_fields
from toolyard.protocol.result_limits import Direction
from toolyard.settings import SETTINGS


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS:
        for variable in setting.environment:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("TOOLYARD_HOME", raising=False)


@pytest.mark.requirement("cli:home")
def test_the_home_is_the_one_named_else_toolyard_home_else_the_data_folder(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert load_config(project).home == tmp_path / ".local/share/toolyard"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert load_config(project).home == tmp_path / "data/toolyard"
    monkeypatch.setenv("TOOLYARD_HOME", str(tmp_path / "own"))
    assert load_config(project).home == tmp_path / "own"
    assert load_config(project, tmp_path / "named").home == tmp_path / "named"


@pytest.mark.requirement("cli:home")
def test_a_home_that_is_a_file_is_refused_in_words(project: Path, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    with pytest.raises(UsageError, match=r"the home '.*home' is not a folder: name one with --home"):
        load_config(project, tmp_path / "home")


@pytest.mark.requirement("cli:config:show")
def test_the_environment_beats_the_file_and_the_file_beats_the_default(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_config(project, tmp_path).settings.truncation_direction is Direction.HEAD
    file = tmp_path / "config.toml"
    file.write_text('truncation_direction = "tail"\nfallback_encodings = ["shift_jis", "gb18030"]\n')
    config = load_config(project, tmp_path)
    assert (config.settings.truncation_direction, config.settings.fallback_encodings) == (
        Direction.TAIL,
        ("shift_jis", "gb18030"),
    )
    monkeypatch.setenv("TOOLYARD_TRUNCATION_DIRECTION", "head")
    monkeypatch.setenv("TOOLYARD_FALLBACK_ENCODINGS", "big5, gb18030")
    config = load_config(project, tmp_path)
    assert (config.settings.truncation_direction, config.settings.fallback_encodings) == (
        Direction.HEAD,
        ("big5", "gb18030"),
    )
    assert config.sources["truncation_direction"] == "TOOLYARD_TRUNCATION_DIRECTION"


@pytest.mark.requirement("envelope:context:params-masked")
@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "API_Key"])
def test_the_providers_key_is_a_secret_under_either_name(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "sk-provider")
    assert load_config(project, tmp_path).secrets == ("sk-provider",)


@pytest.mark.requirement("cli:config:check", "r:R91")
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("truncation_direction = 'up'", '{file}, line 1, column 1: truncation_direction: expected "head" or "tail"'),
        (
            "fallback_encodings = ['klingon']",
            "{file}, line 1, column 1: fallback_encodings: 'klingon' is not a text encoding",
        ),
        ("fallback_encodings = 5", "{file}, line 1, column 1: fallback_encodings: expected a list of encodings"),
        (
            "\ntruncation_dir = 'head'",
            "{file}, line 2, column 1: unknown setting 'truncation_dir': did you mean 'truncation_dire",
        ),
        (
            "[server]\nport = 1",
            "{file}, line 1, column 2: unknown setting 'server': the settings are allowed_hosts, allowed_origins",
        ),
        ("a = = 1", "{file}: Invalid value (at line 1, column 5)"),
    ],
)
def test_a_wrong_setting_is_named_with_its_place_and_the_fix(
    project: Path, tmp_path: Path, written: str, said: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(written)
    with pytest.raises(ConfigError) as raised:
        load_config(project, tmp_path)
    assert file.read_text() == written
    assert str(raised.value).startswith(said.format(file=file))


@pytest.mark.requirement("cli:config:check")
def test_every_problem_is_said_at_once(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("one = 1\nfallback_encodings = 2\n")
    monkeypatch.setenv("TOOLYARD_TRUNCATION_DIRECTION", "sideways")
    with pytest.raises(ConfigError) as raised:
        load_config(project, tmp_path)
    lines = str(raised.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        f"{tmp_path / 'config.toml'}, line 1, column 1",
        f"{tmp_path / 'config.toml'}, line 2, column 1",
        "TOOLYARD_TRUNCATION_DIRECTION",
    ]


@pytest.mark.requirement("config:public-url")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://yard.example.org", "https://yard.example.org"),
        ("https://Yard.Example.org:443/", "https://yard.example.org"),
        ("http://10.0.0.5:6005", "http://10.0.0.5:6005"),
        ("http://[::1]:06005", "http://[::1]:6005"),
        ("https://Example.org/Yard/", "https://example.org/Yard"),
        ("https://example.org/apps/yard-1.0", "https://example.org/apps/yard-1.0"),
    ],
)
def test_the_public_address_is_kept_as_browsers_write_it(
    project: Path, tmp_path: Path, written: str, meant: str
) -> None:
    assert load_config(project, tmp_path).settings.public_url is None
    (tmp_path / "config.toml").write_text(f'public_url = "{written}"\n')
    assert load_config(project, tmp_path).settings.public_url == meant


@pytest.mark.requirement("config:public-url")
@pytest.mark.parametrize(
    "written",
    [
        *(
            "yard.example.org",
            "ftp://yard.example.org",
            "https://",
            "https://a.example.org//yard",
            "https://a.example.org/yard/../x",
            "https://a.example.org/y%61rd",
            "https://a?b",
            "https://a#b",
        ),
        *(
            "https://me@a.example.org",
            "https://a.example.org:0",
            "https://a.example.org:65536",
            "https://a b",
            "https://a)b",
        ),
    ],
)
def test_a_public_address_that_is_none_of_a_server_is_refused_in_words(
    project: Path, tmp_path: Path, written: str
) -> None:
    (tmp_path / "config.toml").write_text(f'public_url = "{written}"\n')
    with pytest.raises(ConfigError, match=r"line 1, column 1: public_url: .*write it like https://yard.example.org"):
        load_config(project, tmp_path)


@pytest.mark.requirement("config:public-url")
@pytest.mark.parametrize("path", ["/chat", "/v1/yard", "/login/"])
def test_a_public_path_that_begins_like_one_of_the_servers_own_is_refused(
    project: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "config.toml").write_text(f'public_url = "https://example.org{path}"\n')
    with pytest.raises(ConfigError, match=r"cannot be told from a page of the server itself: use another path"):
        load_config(project, tmp_path)


@pytest.mark.requirement("console:settings:words")
def test_every_setting_says_in_plain_words_what_it_does() -> None:
    for setting in SETTINGS:
        assert not setting.about.startswith("Whether"), setting.name
        assert setting.about.endswith("."), setting.name


@pytest.mark.requirement("config:no-credentials")
@pytest.mark.parametrize(
    ("line", "left"),
    [
        ('upstream_url = "ftp://me:{secret}@api.example.org/v1"', "'ftp://[masked]@api.example.org/v1'"),
        ('upstream_url = "me:{secret}@api.example.org/v1"', "'[masked]@api.example.org/v1'"),
        ('upstream_url = "ftp://api.example.org/v1?key={secret}&b=2"', "v1?key=[masked]&b=[masked]'"),
        ('public_url = "https://{secret}@example.org"', "'https://[masked]@example.org'"),
        ('allowed_origins = ["https://a.example", "https://u:{secret}@b.example"]', "'https://[masked]@b.example'"),
        ('[upstreams.far]\nurl = "ftp://me:{secret}@far.example"', "'ftp://[masked]@far.example'"),
        ('database = "mysql://me:{secret}@db"', "postgresql://"),
        ('[upstream_options]\nproxy = "ftp://me:{secret}@proxy"', "proxy"),
    ],
)
def test_a_wrong_address_is_quoted_without_its_password_or_key(tmp_path: Path, line: str, left: str) -> None:
    secret = "hunter2/p@ss"
    (tmp_path / "config.toml").write_text(line.format(secret=secret))
    with pytest.raises(ConfigError) as told:
        load_config(tmp_path, tmp_path)
    (problem,) = told.value.problems
    assert left in problem
    assert isinstance(problem, Message)
    assert "hunter2" not in problem + json.dumps(to_fields("message", problem))
