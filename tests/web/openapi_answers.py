"""Compares the answers of servers with their OpenAPI document, in which nothing may be missing.

In the document an object may have members that are not named, so that clients accept those of later versions. Here it
may not: what a server of this version answers is named, member for member.
"""

import re
from collections.abc import Mapping
from typing import Any

import jsonschema_rs


class AnswerCheck:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._components = _close(document["components"])
        paths = sorted(document["paths"].items(), key=lambda item: item[0].count("{"))
        self._paths = [  # few parameters may contain slashes
            (re.compile(re.sub(r"\\\{\w+\\\}", inside, re.escape(path))), operations)
            for inside in ("[^/]+", ".+")
            for path, operations in paths
        ]
        self._validators: dict[int, jsonschema_rs.Validator] = {}

    def find_problem(self, method: str, path: str, status: int, value: Any) -> str:
        """Return what the document does not say of a JSON answer; empty when it says all of it."""
        schema = self._find_schema(method.lower(), path.partition("?")[0], status)
        if schema is None:
            return ""
        validator = self._validators.get(id(schema))
        if validator is None:
            whole = {**_close(schema), "components": self._components}
            validator = self._validators[id(schema)] = jsonschema_rs.validator_for(whole)
        error = next(iter(validator.iter_errors(value)), None)
        return "" if error is None else f"{method} {path}: {status}: {error.instance_path}: {error.message[:1000]}"

    def _find_schema(self, method: str, path: str, status: int) -> Any:
        operations: Any = next((one for pattern, one in self._paths if pattern.fullmatch(path)), {})
        responses = operations.get(method, {}).get("responses", {})
        response = responses.get(str(status)) or responses.get("default") or {}
        return response.get("content", {}).get("application/json", {}).get("schema")


def _close(schema: Any) -> Any:
    """Return a schema whose objects have the members that it names, and no others unless it says so."""
    if isinstance(schema, list):
        return [_close(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _close(one) for key, one in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
