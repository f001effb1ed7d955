"""The campaign: servers, workers, databases and networks are killed, paused and stalled while clients work.

An observer outside keeps a ledger of its own: what each client was told and when, and what each run did and when. At
the end the ledger is laid beside the journal. ``python -m tests.campaign --help`` runs one by hand.
"""
