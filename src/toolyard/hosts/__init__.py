"""Many hosts on one PostgreSQL database: who is there, which tools each has, and calls that run on another one."""
