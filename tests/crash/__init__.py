"""What is left of a host that was killed, starved or cut off."""
