"""What a test looks at in an envelope."""

from typing import Any, cast

from toolyard.protocol.envelope import Envelope, ErrorCode


def code(envelope: Envelope) -> ErrorCode | None:
    return envelope.error.code if envelope.error else None


def entries(envelope: Envelope) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", envelope.data["entries"])


def paths(envelope: Envelope) -> list[str]:
    return [entry["path"] for entry in entries(envelope)]


def timeless(envelope: Envelope) -> dict[str, Any]:
    """The envelope's JSON without the one value that no test can foresee."""
    whole = envelope.to_dict()
    del whole["stats"]["time_ms"]
    return whole
