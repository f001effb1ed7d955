"""What this machine can enforce, and the reasons why not more."""

from collections.abc import Iterator

import pytest

from toolyard.confinement import landlock, level, linux, seccomp
from toolyard.confinement.level import list_missing_everywhere, measure_confinement
from toolyard.confinement.profile import Network, Profile
from toolyard.message import Message
from toolyard.protocol.access import ConfinementLevel, ConfinementRule

pytestmark = pytest.mark.requirement("confinement:level")


@pytest.fixture(autouse=True)
def whole_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that can do everything; each test takes something away."""
    monkeypatch.setattr(linux, "IS_LINUX", True)
    monkeypatch.setattr(landlock, "interface_version", lambda: landlock.VERSION_SCOPES)
    monkeypatch.setattr(seccomp, "is_available", lambda: True)
    monkeypatch.setattr(level, "can_enter_namespaces", lambda: True)
    monkeypatch.setattr(level, "can_make_read_only", lambda: True)
    list_missing_everywhere.cache_clear()
    yield
    list_missing_everywhere.cache_clear()


def measure(profile: Profile | None) -> tuple[ConfinementLevel, list[str]]:
    confinement = measure_confinement(profile)
    return confinement.level, [reason.code for reason in confinement.missing if isinstance(reason, Message)]


def test_a_machine_that_lacks_nothing_reaches_full() -> None:
    assert measure(Profile()) == (ConfinementLevel.FULL, [])
    assert measure(Profile(network=Network.PORTS)) == (ConfinementLevel.FULL, [])


def test_an_owner_can_decide_for_none() -> None:
    assert measure(None) == (ConfinementLevel.NONE, ["confinement.unconfined"])


def test_without_landlock_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "interface_version", lambda: 0)
    assert measure(Profile()) == (ConfinementLevel.NONE, ["confinement.no_landlock"])


def test_another_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "IS_LINUX", False)
    monkeypatch.setattr(landlock, "interface_version", lambda: 0)
    assert measure(Profile()) == (ConfinementLevel.NONE, ["confinement.not_linux"])


@pytest.mark.parametrize("version", range(1, landlock.VERSION_SCOPES))
def test_an_older_landlock_confines_files(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr(landlock, "interface_version", lambda: version)
    assert measure(Profile()) == (ConfinementLevel.FILES, ["confinement.no_signal_scope"])


def test_without_seccomp_only_files_are_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "is_available", lambda: False)
    assert measure(Profile()) == (ConfinementLevel.FILES, ["confinement.no_seccomp"])


def test_without_namespaces_the_modes_and_times_of_files_are_not_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(level, "can_make_read_only", lambda: False)
    own = "confinement.no_own_mounts"
    assert measure(Profile(network=Network.PORTS)) == (ConfinementLevel.FILES, [own])
    monkeypatch.setattr(level, "can_enter_namespaces", lambda: False)
    assert measure(Profile(network=Network.NONE)) == (ConfinementLevel.FILES, [own])
    assert measure(Profile(network=Network.PORTS)) == (ConfinementLevel.FILES, [own, "confinement.no_namespaces"])
    assert measure(Profile(covered=("/srv",))) == (ConfinementLevel.FILES, [own, "confinement.cannot_cover"])


def test_levels_are_ordered() -> None:
    none, files, full = ConfinementLevel
    assert full.reaches(files)
    assert files.reaches(files)
    assert not none.reaches(files)
    assert [rule.minimum for rule in ConfinementRule] == [none, files, full]
