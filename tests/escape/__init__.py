"""The escape suite: a plugin tries to reach what it was not granted, on every start path, and is stopped.

attempts      the table: what is tried, the level that stops it, the operation and its target
attacker.py   a plugin that runs its attempts and reports each; attacker.js and attacker.sh run those they can
scene         the targets: files, processes and sockets that belong to the test alone
host          a host in a process of its own, which runs the attackers on every start path
test_links    links in the place of whatever a profile has a path for, at every moment
test_escape   one assertion for each attempt, and the proof that each one works on an unconfined plugin
"""
