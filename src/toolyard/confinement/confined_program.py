"""Enter a user namespace, restrict this process to a profile and become a program. Run by ``start``.

confined_program.py SOCKET PROFILE PROGRAM ARGUMENT...     the sockets for the profile's ports go to SOCKET
confined_program.py probe                                  end with what ``Probe`` says of it
"""

import json
import os
import socket
import sys

if __name__ == "__main__":  # -I and -S: the package is found beside this file, and nothing else is
    sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]

from toolyard.confinement import linux, namespace
from toolyard.confinement.profile import Network, Profile
from toolyard.confinement.thread import confine_thread, probe_namespaces


def enter_user_namespace() -> None:
    """Enter a user namespace in which this process is who it was. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    linux.unshare(namespace.NEW_USERS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def main(words: list[str]) -> None:
    if words == ["probe"]:
        enter_user_namespace()
        sys.exit(probe_namespaces())
    channel = socket.socket(fileno=int(words[0]))
    fields = json.loads(words[1])
    profile = Profile(
        read=tuple(fields["read"]),
        write=tuple(fields["write"]),
        covered=tuple(fields["covered"]),
        views=tuple((path, shown) for path, shown in fields["views"]),
        network=Network(fields["network"]),
        ports=tuple(fields["ports"]),
        unix_sockets=fields["unix_sockets"],
    )
    try:
        folder = os.getcwd()
        if fields["own_mounts"]:
            enter_user_namespace()
        listeners = confine_thread(profile, own_mounts=fields["own_mounts"], read_only=fields["read_only"])
        os.chdir(folder)  # as it is seen now: what was opened before the mounts were made cannot be written
        if listeners:
            socket.send_fds(channel, [b"l"], [listener.fileno() for listener in listeners])
        for opened in (*listeners, channel):
            opened.close()
        os.execvp(words[2], words[2:])  # noqa: S606 the reviewed command, without a shell
    except OSError as error:
        sys.exit(f"Toolyard could not start {words[2]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
