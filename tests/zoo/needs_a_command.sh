#!/bin/sh
# Runs what nobody has.
no-such-command-here
