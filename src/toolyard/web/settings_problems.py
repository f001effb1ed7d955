"""The response to settings that cannot be stored: each problem with its position in the file."""

from http import HTTPStatus

import orjson
from fastapi import Response

from toolyard.errors import ConfigError
from toolyard.web.refusal import error_body
from toolyard.web.responses import json_response
from toolyard.web.settings_file import list_problems


def problems_response(error: ConfigError) -> Response:
    """Return an error response with the position of each problem."""
    status = HTTPStatus(422)  # Python 3.13 renamed it
    body = orjson.loads(error_body(status, str(error))) | {"problems": list_problems(error)}
    return json_response(body, status)
