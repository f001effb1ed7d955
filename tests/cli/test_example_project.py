"""The example project: made once, beside the home, with files that can be asked about."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from tests.web.server_process import run_command
from toolyard.cli.commands.serve import create_example_project, find_example_folder
from toolyard.errors import ToolyardError

pytestmark = pytest.mark.requirement("make:run:example")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    folder = find_example_folder(tmp_path / "data/toolyard")
    assert create_example_project(folder)
    return folder


def test_it_is_beside_the_home_and_complete(example: Path, tmp_path: Path) -> None:
    assert example == tmp_path / "data/toolyard-example"
    assert sorted(path.relative_to(example).as_posix() for path in example.rglob("*") if path.is_file()) == [
        "README.md", "analysis.ipynb", "notes/ideas.md", "notes/suppliers.md", "notes/会议记录.md", "report.py",
        "sales.csv",
    ]  # fmt: skip
    assert [path.name for path in example.parent.iterdir()] == ["toolyard-example"]


def test_what_a_user_has_changed_is_left_alone(example: Path) -> None:
    (example / "report.py").write_text("print('mine')\n")
    (example / "sales.csv").unlink()
    assert not create_example_project(example)
    assert (example / "report.py").read_text() == "print('mine')\n"
    assert not (example / "sales.csv").exists()


def test_its_readme_tells_the_truth_about_its_files(example: Path) -> None:
    sales = list(csv.DictReader((example / "sales.csv").read_text("utf-8").splitlines()))
    total = sum(int(sale["quantity"]) * float(sale["unit_price"]) for sale in sales)
    done = subprocess.run([sys.executable, example / "report.py"], capture_output=True, text=True, check=True)
    printed = float(done.stdout.split()[-2])
    assert printed < total - 1  # "its total is too low"
    returned = [sale["product"] for sale in sales if int(sale["quantity"]) < 0]
    assert returned.count("rooibos") > len(returned) / 2
    nbformat.validate(json.loads((example / "analysis.ipynb").read_text("utf-8")))
    named = [
        line.split("`")[1] for line in (example / "README.md").read_text("utf-8").splitlines() if line[:3] == "| `"
    ]
    assert [name for name in named if not (example / name).is_file()] == []


def test_its_notebook_runs(example: Path) -> None:
    cells = json.loads((example / "analysis.ipynb").read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    done = subprocess.run([sys.executable, "-c", code], cwd=example, capture_output=True, text=True, check=True)
    assert "Saturday" in done.stdout


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolyardError, match=r"cannot be created in .*file/toolyard-example: .*--project"):
        create_example_project(find_example_folder(tmp_path / "file/toolyard"))


async def test_example_and_project_exclude_each_other(tmp_path: Path) -> None:
    code, _, err = await run_command(tmp_path, "serve", "--example", "--port", "0")
    assert (code, "choose one" in err) == (2, True)
    assert not find_example_folder(tmp_path / "home").exists()


def test_the_files_can_be_changed_even_if_the_installation_is_read_only(example: Path) -> None:
    assert all(os.access(path, os.W_OK) for path in example.rglob("*"))
