"""Schemas of the VCPToolBox installation that is used in place."""

from typing import Annotated

from pydantic import BaseModel, Field

from toolyard.vcp.check import Part, Verdict
from toolyard.vcp.dependencies import NeedKind
from toolyard.web.schemas.common import Code, Params, StrictModel, TextRow


class MissingNeed(BaseModel):
    kind: NeedKind
    name: str
    installable: Annotated[bool, Field(description="Whether Toolyard can install it.")]


class InstallationFinding(BaseModel):
    part: Annotated[Part, Field(description="What it is; `host`: VCPToolBox itself, or its `config.env`.")]
    name: str
    verdict: Annotated[Verdict, Field(description="What becomes of it; `adapted`: it works in another way.")]
    why: str
    why_code: Code = ""
    why_params: Params
    needs: Annotated[list[MissingNeed], Field(description="What a plugin needs and this machine does not have.")]
    waits: Annotated[bool, Field(description="Whether it waits for the decision.")]


class InstallationReach(TextRow):
    plugins: Annotated[list[str], Field(description="Those of the waiting plugins that may.")]


class WaitingPlugin(BaseModel):
    name: str
    settings: Annotated[list[str], Field(description="The settings of the installation that it gets.")]
    changed: Annotated[list[TextRow], Field(description="Since it was approved.")]


class InstallationReview(BaseModel):
    folder: Annotated[str | None, Field(description="The folder of the installation; null: none is used in place.")]
    findings: Annotated[list[InstallationFinding], Field(description="What becomes of each part of it.")]
    reach: Annotated[list[InstallationReach], Field(description="What the waiting plugins may reach together.")]
    waiting: Annotated[list[WaitingPlugin], Field(description="The plugins that the decision is about.")]
    process_secrets: Annotated[
        list[str], Field(description="The secrets that those of VCPToolBox's own process get together, if one waits.")
    ]
    fingerprint: Annotated[str, Field(description="Of these plugins, each as it is now.")]
    install: Annotated[str, Field(description="The command that installs what can be; empty when nothing can.")]


class InstallationDecision(StrictModel):
    fingerprint: Annotated[str, Field(min_length=1, max_length=200, description="`fingerprint` as shown.")]
