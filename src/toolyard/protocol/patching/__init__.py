"""The parts of ``protocol.apply_patch``: two patch languages, the places of their hunks, and the splices they become.

file_change      the values that both languages are parsed into
begin_patch      the language of ``*** Begin Patch``
unified          the language of ``diff -u`` and git; its headers in ``unified_header``
line_match       a text as lines, and the ways to find lines of a patch among them
target_text      the text to change, and the places of the hunks in it; ``placement`` chooses among several
splice           the splices of a placed hunk
refusal          the failure of a hunk that has no place
"""
