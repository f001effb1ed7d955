"""The ways in which Toolyard's tools are offered to a model."""

from enum import StrEnum


class OfferMode(StrEnum):
    AUTO = "auto"  # native, or text for a model that refuses native tools; nothing to a request with tools of its own
    NATIVE = "native"  # as ``tools`` of the request
    TEXT = "text"  # as a listing in its system message
    NONE = "none"
