"""The commands, a module for each command or group; each is imported when it is called."""
