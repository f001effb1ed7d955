"""Confinement: a child process can do what its profile says, and nothing else.

    profile      a value: the trees a program may read or write, its network, its sockets
    start        start a process under a profile; contain one, so that it leaves nothing behind
    thread       confine the calling thread: each step in its order, capabilities among them
    landlock     the kernel's allow-list of files, signals and abstract sockets
    seccomp      the system calls that no confined program needs, and the sockets that it may not open
    namespace    a network or a view of the files of its own, where the kernel offers it
    level        what this machine can enforce for a profile, in words

Landlock, seccomp and capabilities belong to a thread, and a child inherits them from the thread that starts it. So a
thread of the host confines itself, starts the child and ends: nothing runs between fork and exec, the host itself
stays as it is, and the start costs less than a millisecond more.
"""
