"""VCPToolBox in place: an installation that stays where it is, with Toolyard as the server around it."""
