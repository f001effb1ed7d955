"""Patches of several files: two patch languages, the places of their hunks, and the splices they become.

patch_plan   a patch checked against the files, and what to write; the failure of a hunk that has no place
file_change  the values that both languages are parsed into
begin_patch  the language of ``*** Begin Patch``
unified      the language of ``diff -u`` and git
target_text  the text to change, and the places of the hunks in it
placement    a text as lines, the ways to find a patch's lines among them, the choice among several places, and the
             splices of a placed hunk
"""
