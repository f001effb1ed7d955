"""Sinks: the events of a chat turn as what a client gets. Another client protocol is one more sink."""
