"""A plugin as its folder has it: found, read, reviewed, granted what it may reach, installed."""
