"""Every stdio and static plugin of a real VCPToolBox answers in place as it does there.

The tree is given by TOOLYARD_VCP_TREE, with its npm packages installed; in the soak.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.vcp.calls import EXCEPTIONS, NOT_LOADED
from tests.vcp.comparison import ask_ours, ask_theirs, copy_tree, find_differences

TREE = os.environ.get("TOOLYARD_VCP_TREE", "")


@pytest.mark.requirement("vcp:same-answers")
@pytest.mark.skipif(
    not TREE or not shutil.which("node"), reason="TOOLYARD_VCP_TREE names no VCPToolBox to compare with"
)
def test_plugins_answer_in_place_as_in_vcptoolbox(tmp_path: Path) -> None:
    theirs, ours = (copy_tree(Path(TREE), tmp_path / name) for name in ("theirs", "ours"))
    there, here = ask_theirs(theirs, tmp_path), ask_ours(ours, tmp_path)
    assert there.keys() == here.keys()
    different = {
        name: found for name in there if (found := find_differences(name, there[name], here[name], (theirs, ours)))
    }
    assert different.keys() <= EXCEPTIONS.keys(), different


@pytest.mark.requirement("vcp:same-answers")
@pytest.mark.parametrize("page", ["vcp.md", "vcp.zh-CN.md"])
def test_the_page_lists_each_exception(page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")
    rows = {line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")}
    assert {*EXCEPTIONS, *NOT_LOADED} <= rows
