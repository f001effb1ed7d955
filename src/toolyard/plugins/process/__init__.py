"""The process that runs a plugin: started cold or warm, served through its pipes, and ended with all that it started.

    launch            the way to start a program, and the contract of what is started
    cold_starter      starts it when its call comes; ``warm`` has it started before
    child             one run: from the input to the decision, as an automaton
    pipes             its three pipes, and the output collected so far
    child_report      how it ended: its report, its answer, or a failure with cause and remedy
    process_output    what is kept of its outputs beside the answer, and its progress
    children          all processes of running calls, until each of them is dead
    guardian_main     kills them when the host was killed
    ports             what the host serves in its network: listening sockets, and the bytes that pass
    network_services  which services it gets: the proxy, or one address of the host
    network_proxy     the way to the hosts of its list
    spared_ports      serves the ports of tasks that outlive their host

``guardian_main``, ``spared_ports`` and the ``fork_*`` files of ``warm`` run as programs of their own, by their paths.
"""
