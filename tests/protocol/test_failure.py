"""The closed set of error codes, and the finer reasons that decide their code."""

import pytest

from toolyard.protocol.envelope import ErrorCode, Failure, Reason, code_of

EDITS = {
    "NOT_FOUND_IN_FILE": "INVALID_PARAM",
    "NOT_UNIQUE": "INVALID_PARAM",
    "NO_CHANGE": "INVALID_PARAM",
    "TOO_LARGE": "INVALID_PARAM",
    "UNSUPPORTED_ENCODING": "INVALID_PARAM",
    "STALE": "CONFLICT",
    "ALREADY_EXISTS": "CONFLICT",
}
PLUGINS = {
    "START_FAILED": "EXECUTION_ERROR",
    "NO_OUTPUT": "EXECUTION_ERROR",
    "INVALID_OUTPUT": "EXECUTION_ERROR",
    "OUTPUT_TOO_LARGE": "EXECUTION_ERROR",
    "CRASHED": "EXECUTION_ERROR",
    "BUSY": "EXECUTION_ERROR",
    "INTERRUPTED": "EXECUTION_ERROR",
    "CANCELLED": "EXECUTION_ERROR",
    "DENIED": "ACCESS_DENIED",
    "APPROVAL_REQUIRED": "EXECUTION_ERROR",
}


@pytest.mark.requirement("code:closed")
def test_there_are_ten_error_codes() -> None:
    """002 §3.3."""
    assert {code.value for code in ErrorCode} == {
        "NOT_FOUND",
        "ACCESS_DENIED",
        "PERMISSION_DENIED",
        "INVALID_PARAM",
        "TIMEOUT",
        "INTERNAL_ERROR",
        "EXECUTION_ERROR",
        "CONFLICT",
        "IS_DIRECTORY",
        "BINARY_FILE",
    }


@pytest.mark.requirement("code:reasons:edits")
@pytest.mark.parametrize(("reason", "code"), EDITS.items())
def test_a_reason_of_an_edit_comes_with_its_code(reason: str, code: str) -> None:
    assert code_of(Reason(reason)) is ErrorCode(code)


@pytest.mark.requirement("code:reasons:plugins")
@pytest.mark.parametrize(("reason", "code"), PLUGINS.items())
def test_a_reason_of_a_plugin_comes_with_its_code(reason: str, code: str) -> None:
    assert code_of(Reason(reason)) is ErrorCode(code)


@pytest.mark.requirement("code:reasons:edits", "code:reasons:plugins")
def test_there_are_no_other_reasons() -> None:
    assert {reason.value for reason in Reason} == EDITS.keys() | PLUGINS.keys()


@pytest.mark.requirement("code:closed")
@pytest.mark.parametrize("code", ErrorCode)
def test_a_failure_without_a_finer_cause_has_its_code_and_no_reason(code: ErrorCode) -> None:
    failure = Failure(code, "It did not work.", hint="Try again.")
    assert (failure.code, failure.reason, failure.message, failure.hint) == (
        code,
        None,
        "It did not work.",
        "Try again.",
    )
    assert (failure.data, failure.context, str(failure)) == ({}, {}, "It did not work.")


@pytest.mark.requirement("code:reasons:edits", "envelope:context:reason")
def test_a_failure_keeps_its_reason_and_what_it_found_out() -> None:
    failure = Failure(Reason.STALE, "It changed.", data={"hash": "ab"}, context={"path_resolved": "a.py"})
    assert (failure.code, failure.reason) == (ErrorCode.CONFLICT, Reason.STALE)
    assert (failure.data, failure.context) == ({"hash": "ab"}, {"path_resolved": "a.py"})
