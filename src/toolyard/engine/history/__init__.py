"""History: the journal of calls and events, the audit trail, messages for back ends, statistics."""
