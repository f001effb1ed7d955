"""Schemas of request and response bodies, as the OpenAPI document shows them."""
