"""Prompts of an installation become here what VCPToolBox's own message processor makes of them.

The tree is given by TOOLYARD_VCP_TREE, with its npm packages installed; in the soak. Its modules run unmodified.
"""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sampling import SOAK
from tests.vcp.prompts import ask_ours, ask_vcptoolbox, copy_prompts, make_random
from toolyard.protocol.requests.scanner import neutralise

TREE = os.environ.get("TOOLYARD_VCP_TREE", "")
pytestmark = [
    pytest.mark.requirement("vcp:prompts"),
    pytest.mark.skipif(
        not TREE or not shutil.which("node"), reason="TOOLYARD_VCP_TREE names no VCPToolBox to compare with"
    ),
]


@pytest.mark.parametrize("seed", range(250 if SOAK else 5))
async def test_generated_prompts_that_name_each_other_become_the_same(tmp_path: Path, seed: int) -> None:
    asked = make_random(tmp_path, seed)
    # What tools printed is made inert here, by characters that nobody sees, so that its marks are none.
    inert = replace(asked, statics={name: neutralise(text) for name, text in asked.statics.items()})
    theirs, ours = (
        json.loads(json.dumps(one).replace("\\u200b", ""))
        for one in (ask_vcptoolbox(Path(TREE), tmp_path, inert), await ask_ours(tmp_path, asked))
    )
    for (model, messages), there, here in zip(asked.requests, theirs, ours, strict=True):
        assert here == there, (model, messages)


async def test_every_prompt_that_comes_with_vcptoolbox_becomes_the_same(tmp_path: Path) -> None:
    asked = copy_prompts(Path(TREE), tmp_path)
    theirs, ours = ask_vcptoolbox(Path(TREE), tmp_path, asked), await ask_ours(tmp_path, asked)
    assert len(asked.requests) > 50
    for (model, messages), there, here in zip(asked.requests, theirs, ours, strict=True):
        assert here == there, (model, messages)
