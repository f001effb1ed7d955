"""``/v1/installation``: the review of the VCPToolBox installation that is used in place, and the decision on it.

Requires ``admin``. Nothing of the installation is run for it.
"""

import asyncio
from http import HTTPStatus

from fastapi import Request, Response

from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal, not_found
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routing import Routes
from toolyard.web.schemas.installation import InstallationDecision, InstallationReview
from toolyard.yard.vcp_review import allow_installation, review_installation
from toolyard.yard.yard import Yard

_NONE: JsonObject = {
    "folder": None, "findings": [], "reach": [], "waiting": [], "process_secrets": [], "fingerprint": "", "install": ""
}  # fmt: skip


def router(yard: Yard) -> Routes:
    routes = Routes("/v1/installation", tag="plugins")

    async def show() -> Response:
        review = await asyncio.to_thread(review_installation, yard)
        return json_response(_NONE if review is None else review.to_json())

    @routes.get("", InstallationReview)
    async def show_installation() -> Response:
        """Return what becomes of each part of a VCPToolBox installation, and what its plugins would be allowed."""
        return await show()

    @routes.post("/allow", InstallationReview, audit="plugin.allowed")
    async def allow_plugins(decision: InstallationDecision, request: Request) -> Response:
        """Approve the plugins that wait, exactly as they were shown; 409 when one of them has changed since."""
        review = await asyncio.to_thread(review_installation, yard)
        if review is None:
            raise not_found(Message("VCPToolBox installation"))
        if review.digest != decision.fingerprint:
            message = Message("{folder} has changed since it was shown: review it again", folder=str(review.root))
            raise Refusal(HTTPStatus.CONFLICT, message)
        await asyncio.to_thread(allow_installation, yard, review)
        names = [one.review.name for one in review.waiting]
        add_audit_detail(request.scope, target=str(review.root), fingerprint=review.digest, plugins=names)
        return await show()

    return routes
