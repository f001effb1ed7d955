"""Warm starts: unmodified plugins without the time that their interpreter takes to start. Linux only.

- Python: a fork server for each plugin, which has imported what the plugin imports and forks once for each call.
- Node, and Python that is unfit for forking: an interpreter that has started and stands waiting before the script.
- Anything else (shell, compiled programs) starts cold: there is little to gain.

The contract: no line of a plugin's own code runs before its call; the child of a call is bound to it (its number, its
limits) before it goes on; whatever goes wrong until then ends in a cold start; a warm process is the host's and dies
with it. A result is the one of a cold start. What a child could tell apart if it looked: its command line and its
parent in /proc, a frame of ours under the script's in a printed stack, more modules in sys.modules, and what imports
drew by chance (the seed of Python's hashes, sympy's first number for a Dummy), which is the same from one server;
sources of randomness are reseeded (``fork_random``). A server is replaced when the launch, the script or the set of
installed packages changes; a package that is edited in its place is seen when the server is made the next time.
"""
