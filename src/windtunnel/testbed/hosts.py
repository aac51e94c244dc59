"""How a process enters a virtual host: its network, its name, and its view of a few files."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from windtunnel.testbed.places import SITE_CONFIG, config_folder, enter_script, namespace_file, slurm_conf
from windtunnel.testbed.spec import ClusterSpec, all_hosts

MARK = "WINDTUNNEL_TESTBED"  # environment variable of everything that a testbed starts; its value is the folder


def render_hosts(spec: ClusterSpec) -> str:
    """The hosts file: every virtual host, so that no name needs a resolver."""
    lines = ["127.0.0.1 localhost", "::1 localhost", "::ffff:127.0.0.1 localhost.testbed"]
    for host in all_hosts(spec):
        lines.append(f"{host.address} {host.name}")
        # The same address as a dual-stack socket reports it, under another name so that `n0` keeps one address.
        lines.append(f"::ffff:{host.address} {host.name}.testbed")
    return "\n".join(lines) + "\n"


def render_resolv_conf() -> str:
    """A resolver that refuses at once: without it each look-up of an unknown name waits 10 s."""
    return "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"


def render_enter(spec: ClusterSpec, host: str, *, bind_resolver: bool) -> str:
    """The script that runs in fresh mount and UTS namespaces, binds the host's files, and becomes its arguments."""
    folder = spec.folder
    binds = [(config_folder(folder), SITE_CONFIG), (folder / "etc" / "hosts", Path("/etc/hosts"))]
    if bind_resolver:
        binds.append((folder / "etc" / "resolv.conf", Path("/etc/resolv.conf")))
    lines = ["#!/bin/sh", "set -e"]
    lines += [f"mount --bind {quote(str(source))} {quote(str(target))}" for source, target in binds]
    lines += [f"echo {quote(host)} > /proc/sys/kernel/hostname", 'exec "$@"']
    return "\n".join(lines) + "\n"


def enter_argv(spec: ClusterSpec, host: str, argv: Sequence[str]) -> tuple[str, ...]:
    """`argv` as run on `host`: every step is an exec, so the process id is that of the command itself.

    Not `ip netns exec`: it mounts a new /sys, which hides the control groups that slurmd wants to see.
    """
    if not spec.network:
        return tuple(argv)
    namespace = namespace_file(spec.folder, host)
    script = enter_script(spec.folder, host)
    return ("nsenter", f"--net={namespace}", "unshare", "--mount", "--uts", "--", "/bin/sh", str(script), *argv)


def host_env(spec: ClusterSpec) -> dict[str, str]:
    """What the environment of every process on the testbed gains."""
    return {MARK: str(spec.folder), "SLURM_CONF": str(slurm_conf(spec.folder))}
