"""The plugins of an installation that live in VCPToolBox's own process, in a confined Node process of ours.

``bridge.js`` loads the owner's own, unmodified ``Plugin.js`` without its server. ``launch`` says what that process may
reach, ``connection`` talks to one that runs, ``bridge`` starts it when it is needed and again when it has crashed, and
``bridge_tool`` makes each such plugin a tool like any other.
"""
