"""Many hosts on one PostgreSQL database: the hosts, the tools of each, and calls that run on another one."""
