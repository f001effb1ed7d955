"""Enter a user namespace, restrict this process to a profile and become a program. Run by ``start``.

confined_program.py SOCKET PROFILE PROGRAM ARGUMENT...     the sockets for the profile's ports go to SOCKET
confined_program.py probe                                  end with 0 if that would work here
"""

import json
import os
import socket
import sys

if __name__ == "__main__":  # -I and -S: the package is found beside this file, and nothing else is
    sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]

from toolyard.confinement import linux, namespace
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.thread import enter_namespaces, restrict_thread


def enter_user_namespace(also: int) -> None:
    """Enter a user namespace, and others with it, in which this process is who it was. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    linux.unshare(namespace.NEW_USERS | also)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def main(words: list[str]) -> None:
    if words == ["probe"]:
        enter_user_namespace(0)
        namespace.enter_mounts()
        namespace.enter_network(())
        return
    channel = socket.socket(fileno=int(words[0]))
    fields = json.loads(words[1])
    profile = Profile(
        read=tuple(fields["read"]),
        write=tuple(fields["write"]),
        covered=tuple(fields["covered"]),
        network=Network(fields["network"]),
        ports=tuple(fields["ports"]),
        unix_sockets=fields["unix_sockets"],
    )
    needs_namespace = bool(profile.covered) or profile.network is Network.PORTS
    if needs_namespace:
        enter_user_namespace(0)
    listeners = enter_namespaces(profile, own_mounts=needs_namespace)
    if listeners:
        socket.send_fds(channel, [b"l"], [listener.fileno() for listener in listeners])
    for opened in (*listeners, channel):
        opened.close()
    restrict_thread(profile)
    os.execv(words[2], words[2:])  # noqa: S606 the reviewed command, without a shell


if __name__ == "__main__":
    main(sys.argv[1:])
