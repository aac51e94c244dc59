"""`testbed status`: what runs of a testbed."""

from pathlib import Path

from windtunnel.testbed.processes import is_alive
from windtunnel.testbed.run import run_inside
from windtunnel.testbed.state import ClusterState, read_state


def run_status(folder: Path) -> bool:
    """Print the daemons and nodes; returns whether the testbed is whole."""
    state = read_state(folder)
    if state is None:
        print(f"testbed: none in {folder}")
        return False
    dead = [started for started in state.processes if not is_alive(started)]
    print(render_status(state, tuple(started.name for started in dead)))
    if state.phase != "up" or dead:
        return False
    print(run_inside(state.spec, ["sinfo", "--format=%.10P %.6D %.10T %N %G"]).stdout.rstrip(), flush=True)
    return True


def render_status(state: ClusterState, dead: tuple[str, ...]) -> str:
    """Size, links and daemons in a few lines; `dead` names those that have ended."""
    spec = state.spec
    links = f"{spec.node_mbit} Mbit/s a node, {spec.leaf_mbit} Mbit/s a leaf" if spec.network else "not shaped"
    daemons = ", ".join(
        f"{started.name} {'ended' if started.name in dead else started.pid}" for started in state.processes
    )
    return (
        f"testbed: {'up' if state.phase == 'up' else 'half made'} in {spec.folder}\n"
        f"  nodes {spec.nodes}, leaves {spec.leaves}, GPUs a node {spec.gpus}; links {links}; "
        f"accounting {'on' if spec.accounting else 'off'}\n"
        f"  daemons: {daemons}"
    )
