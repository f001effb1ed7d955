// Requires what nobody has.
require("no-such-module-here");
