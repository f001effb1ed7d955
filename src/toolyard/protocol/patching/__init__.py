"""The parts of ``protocol.apply_patch``: two patch languages, where their hunks stand, and what they write there.

text      the values a patch is read into
begin     the language of ``*** Begin Patch``
unified   the language of ``diff -u`` and git; header: which file one of its parts is about
lines     a text as lines, and the ways to find lines in it
place     where each hunk may stand; order: the one way to place them all
splice    what a placed hunk writes
refusal   why a hunk has no place, told to whoever wrote it
"""
