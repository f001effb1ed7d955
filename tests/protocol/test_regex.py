"""Possessive groups match the same on every Python."""

import importlib
import pickle
import pkgutil
import random
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._constants as opcodes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolyard
from toolyard.protocol.regex import IS_BROKEN, compile_pattern, expand_possessive
from toolyard.protocol.requests.marks import make_marks

pytestmark = pytest.mark.requirement("python:versions")
_LISTED = """
import pickle, re, sys
found, plain, package = [], re.compile, sys.argv[1]
def compile(pattern, flags=0):
    frame = sys._getframe(1)
    helped = frame.f_code.co_filename.endswith("protocol/regex.py")
    frame = frame.f_back if helped else frame
    if frame.f_code.co_filename.startswith(package):
        found.append((frame.f_code.co_filename.removeprefix(package), pattern, int(flags), helped))
    return plain(pattern, flags)
re.compile = compile
from tests.protocol.test_regex import import_everything
import_everything()
sys.stdout.buffer.write(pickle.dumps(found))
"""


def import_everything() -> None:
    for module in pkgutil.walk_packages(toolyard.__path__, "toolyard."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    make_marks(None)


def _has_possessive_group(items: Any) -> bool:
    """Whether one repeats more than a single character."""
    for opcode, value in items:
        if opcode in (opcodes.POSSESSIVE_REPEAT, opcodes.MAX_REPEAT, opcodes.MIN_REPEAT):
            if opcode is opcodes.POSSESSIVE_REPEAT and not compiler._simple(value[2]):
                return True
            inner = [value[2]]
        elif opcode is opcodes.ATOMIC_GROUP:
            return True
        elif opcode is opcodes.BRANCH:
            inner = value[1]
        elif opcode is opcodes.SUBPATTERN:
            inner = [value[3]]
        elif opcode in (opcodes.ASSERT, opcodes.ASSERT_NOT):
            inner = [value[1]]
        else:
            continue
        if any(map(_has_possessive_group, inner)):
            return True
    return False


@pytest.fixture(scope="module")
def patterns() -> list[tuple[str, Any, int, bool]]:
    """Every pattern of ours that a module compiles: where, as it was given to ``re``, and whether by our function."""
    root = Path(__file__).parents[2]
    package = f"{Path(toolyard.__file__).parent}/"
    done = subprocess.run([sys.executable, "-c", _LISTED, package], capture_output=True, check=True, cwd=root)
    compiled: list[tuple[str, Any, int, bool]] = pickle.loads(done.stdout)
    return compiled


def test_every_possessive_group_is_compiled_by_our_function(patterns: list[tuple[str, Any, int, bool]]) -> None:
    calls = {
        (place, pattern)
        for place, pattern, flags, helped in patterns
        if _has_possessive_group(parser.parse(pattern, flags)) and (IS_BROKEN or not helped)
    }
    assert calls == set()
    assert sum(helped for *_, helped in patterns) > 30


def test_every_pattern_matches_as_its_plain_equivalent(patterns: list[tuple[str, Any, int, bool]]) -> None:
    for _, pattern, flags, helped in patterns:
        if helped:
            assert not _has_possessive_group(parser.parse(expand_possessive(pattern), flags))
            for text in _samples(pattern):
                assert _spans(re.compile(pattern, flags), text) == _spans(
                    re.compile(expand_possessive(pattern), flags), text
                )


def _samples(pattern: Any) -> list[Any]:
    """Texts of the characters that a pattern speaks of, whole and cut short."""
    chance = random.Random(str(pattern))
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    alphabet = sorted({*re.sub(r"\\[A-Za-z]|\(\?[:=!<P]?", "", text), *'ab1 \t\n"\\/'})
    made = ["".join(chance.choices(alphabet, k=chance.randrange(40))) for _ in range(300)]
    made += ['{"a": [1, "x\\"", true], "b": {"c": null}}'[:size] for size in range(40)]
    return [one.encode("latin-1", "replace") for one in made] if isinstance(pattern, bytes) else made


def _spans(pattern: Any, text: Any) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


POSSESSIVE = ("(?:ab?c)?+", "(?:ab?c)*+d", "(?:ab*+c)*+", "(?:a(?!b)|b)*+c", "(?:a(?:bc)*+d){1,2}+", "(?:ab|a)*+b?")
PLAIN = (
    "(?:abc|ac)?",  # each by hand, without any possessive mark
    "(?:abc|ac)*d",
    "(?:ab*c)*",
    "(?:a(?!b)|b)*c",
    "(?:a(?:bc)*d){1,2}",
    "(?:ab|a(?!b))*(?!a)b?",
)


@given(st.text(alphabet="abcd", max_size=12), st.sampled_from(list(zip(POSSESSIVE, PLAIN, strict=True))))
def test_a_repetition_that_fails_half_way_counts_for_nothing(text: str, pair: tuple[str, str]) -> None:
    possessive, plain = compile_pattern(pair[0]).match(text), re.match(pair[1], text)
    assert (possessive and possessive[0]) == (plain and plain[0])


@pytest.mark.parametrize("pattern", ["(?:ab)*+(c)", "(?:(a)b)*+"])
def test_a_group_whose_number_would_change_needs_a_name(pattern: str) -> None:
    with pytest.raises(ValueError, match="needs a name"):
        expand_possessive(pattern)
