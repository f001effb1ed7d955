"""Nodes: other machines whose tools are used here, connected as VCPToolBox's distributed servers.

``node`` is one connection and its messages, ``nodes`` all that are connected, with the names of their tools and what
they give to prompts, ``node_tool`` one tool of a node as a tool like any other, and ``node_files`` brings files.
"""
