"""The response to settings that cannot be stored: each problem with its position in the file."""

from collections.abc import Collection
from http import HTTPStatus

import orjson
from fastapi import Response

from toolyard.errors import ConfigError
from toolyard.message import Message
from toolyard.web.refusal import error_body
from toolyard.web.responses import json_response
from toolyard.web.settings_file import list_problems


def problems_response(error: ConfigError, *, given: Collection[str] = ()) -> Response:
    """Return an error response with the position of each problem.

    ``given``: the settings that were given by name. Their problems have no position: nobody wrote them in a file.
    """
    named = ConfigError(*(_drop_place(problem, given) for problem in error.problems))
    status = HTTPStatus(422)  # Python 3.13 renamed it
    body = orjson.loads(error_body(status, str(named))) | {"problems": list_problems(named)}
    return json_response(body, status)


def _drop_place(problem: str, given: Collection[str]) -> str:
    inner = problem.params.get("problem") if isinstance(problem, Message) else None
    is_given = isinstance(inner, Message) and (inner.params.get("name") in given or inner.params.get("key") in given)
    return str(inner) if is_given else problem
