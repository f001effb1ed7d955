"""Durable state: the implementations of Store."""
