"""The plugins that ship with Toolyard, run as the child processes they are."""
