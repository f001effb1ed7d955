"""The package index of this machine, for programs that run in another root file system: pip's settings, and the files
and folders that they name."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

_WHERE_FROM = ("index-url", "extra-index-url", "find-links", "cert", "trusted-host")


@cache
def read_pip_settings() -> dict[str, str]:
    """Return the settings that say where packages come from, by pip's names for them."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    values = {
        name.rpartition(".")[2]: str(ast.literal_eval(value))
        for name, _, value in (line.partition("=") for line in lines)
    }
    return {name: " ".join(values[name].split()) for name in _WHERE_FROM if name in values}


def list_index_paths() -> list[Path]:
    """Return the files and folders on this machine that the settings name."""
    words = re.findall(r"(?:^|\s|file://)(/\S+)", " ".join(read_pip_settings().values()))
    paths = [_find_index_root(Path(word)) for word in words]
    return sorted({path for path in paths if path.exists()})


def _find_index_root(path: Path) -> Path:
    """Return the folder of an index that has its files beside ``simple``, else the path itself."""
    return path.parent if path.name == "simple" else path


def make_pip_conf() -> str:
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in read_pip_settings().items())


def make_package_environment() -> dict[str, str]:
    """Return the variables by which pip and uv use the same index."""
    settings = read_pip_settings()
    variables = {f"PIP_{name.replace('-', '_').upper()}": value for name, value in settings.items()}
    variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip looks for packages
    for name, variable in (("index-url", "UV_DEFAULT_INDEX"), ("extra-index-url", "UV_INDEX"),
                           ("find-links", "UV_FIND_LINKS"), ("cert", "SSL_CERT_FILE")):  # fmt: skip
        if name in settings:
            variables[variable] = settings[name]
    return variables
