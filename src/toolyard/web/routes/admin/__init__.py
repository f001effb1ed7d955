"""Routes of the installation: the pages of the console, sign-in and keys, settings, status, health, restoring."""
