"""Routes of calls: tools, approvals and their rules, tasks, schedules, the journal and its events, the audit trail."""
