"""A fork server decides for each source of randomness: reseeded in every child, or a reason not to fork."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.plugins.children import LINUX
from tests.plugins.test_warm_same import PER_CALL, Refuses, call, folder_with, launch_of, make_warm, starters
from toolyard.plugins.process.launch import Launch

pytestmark = [
    pytest.mark.requirement("plugin:warm:random"),
    pytest.mark.skipif(not LINUX, reason="warm starts need Linux"),
]
OWN_VALUE = "an import seeds a source of randomness with a value of its own"

# what a package makes when it is imported, and how a script draws a number from it
RESEEDED = {
    "Random": ("import random\nown = random.Random()", "odd.own.random()"),
    "Random that was used": ("import random\nown = random.Random()\nown.gauss(0, 1)", "odd.own.gauss(0, 1)"),
    "Random seeded with nothing": ("from random import Random\nown = Random(5)\nown.seed()", "odd.own.random()"),
    "a class of its own": ("import random\nclass Own(random.Random):\n    x = 1\nown = Own()", "odd.own.random()"),
    "SystemRandom": ("import random\nown = random.SystemRandom()", "odd.own.random()"),
    "the module's": ("import random\nrandom.random()\nrandom.seed()", "odd.random.random()"),
    "numpy's legacy": ("import numpy.random", "float(odd.numpy.random.normal())"),
    "RandomState": ("import numpy.random\nown = numpy.random.RandomState()\nown.normal()", "float(odd.own.normal())"),
    "Generator": ("import numpy.random\nown = numpy.random.default_rng()", "float(odd.own.random())"),
    "Generator of a Generator": (
        "import numpy.random\nown = numpy.random.default_rng()",
        "float(odd.own.bit_generator.seed_seq.spawn(1)[0].generate_state(1)[0])",
    ),
    "Philox": (
        "from numpy.random import *\nown = Generator(Philox())",
        "float(odd.own.random())",
    ),
}
NOT_FORKED = {
    "Random(5)": ("import random\nown = random.Random(5)", OWN_VALUE),
    "the module's, seeded": ("import random\nrandom.seed(5)", OWN_VALUE),
    "default_rng(5)": ("import numpy.random\nown = numpy.random.default_rng(5)", OWN_VALUE),
    "RandomState(5)": ("import numpy.random\nown = numpy.random.RandomState(5)", OWN_VALUE),
    "numpy's legacy, seeded": ("import numpy.random\nnumpy.random.seed(5)", OWN_VALUE),
    "a seed for later": (
        "import numpy.random\nown = numpy.random.SeedSequence()",
        "an import keeps a seed of numpy for later",
    ),
    "other numbers": (
        "import random\nclass Dice(random.Random):\n    def random(self):\n        return 0.5\nown = Dice()",
        "an import makes a source of randomness of an unknown kind, Dice",
    ),
}


def launch_with(folder: Path, package: str, script: str) -> Launch:
    """A script that imports a package ``odd`` which is installed."""
    launch = launch_of(folder_with(folder, "main.py", script), sys.executable, "main.py")
    (folder / "site-packages").mkdir()
    (folder / "site-packages/odd.py").write_text(package, encoding="utf-8")
    return replace(launch, environment={**launch.environment, "PYTHONPATH": str(folder / "site-packages")})


@pytest.mark.parametrize("name", RESEEDED)
async def test_a_source_that_the_system_seeded_is_reseeded_for_each_call(name: str, tmp_path: Path) -> None:
    package, draw = RESEEDED[name]
    launch = launch_with(tmp_path, package, f"import odd\nprint({draw})")
    async with starters() as (children, _, warm):
        assert await make_warm(children, warm, launch)
        warm.cold = Refuses()
        drawn = [await call(children, warm, launch) for _ in range(4)]
    assert {code for code, _, _ in drawn} == {0}
    assert len({out for _, out, _ in drawn}) == 4


@pytest.mark.parametrize("name", NOT_FORKED)
async def test_a_source_with_a_seed_of_its_own_is_not_forked(name: str, tmp_path: Path) -> None:
    package, reason = NOT_FORKED[name]
    launch = launch_with(tmp_path, package, "import odd\nprint('done')")
    async with starters() as (children, _, warm):
        assert not await make_warm(children, warm, launch)
        assert warm.servers.unfit_reason(warm.launch_key(launch, PER_CALL)) == reason


async def test_the_modules_that_were_watched_are_as_they_were(tmp_path: Path) -> None:
    script = (
        "import json, odd, random, secrets, sys\n"
        "kept = [random.Random.seed.__qualname__, random.seed.__func__ is random.Random.seed,\n"
        "  secrets.randbits.__name__, type(secrets.randbits).__name__, type(random.__loader__).__name__,\n"
        "  type(secrets.__spec__.loader).__name__,\n"
        "  [type(one).__name__ for one in sys.meta_path]]\n"
        "print(json.dumps(kept))"
    )
    launch = launch_with(tmp_path, "import random, secrets", script)
    async with starters() as (children, cold, warm):
        expected = json.loads((await call(children, cold, launch))[1])
        assert await make_warm(children, warm, launch)
        warm.cold = Refuses()
        assert json.loads((await call(children, warm, launch))[1]) == expected
