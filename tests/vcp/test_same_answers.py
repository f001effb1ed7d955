"""Every stdio and static plugin of a real VCPToolBox answers in place as it does there.

The tree is given by TOOLYARD_VCP_TREE, with its npm packages installed; in the soak.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.vcp.comparison import ask_ours, ask_theirs, copy_tree, find_differences

TREE = os.environ.get("TOOLYARD_VCP_TREE", "")
EXCEPTIONS = {
    "ToolCallRecordQuery": "it reads the records that VCPToolBox itself keeps in its folder config, with SQLite, which "
    "must write beside them; calls are recorded in Toolyard's journal here",
}


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
