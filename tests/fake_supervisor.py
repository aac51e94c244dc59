"""`windtunnel trial DIR` with fake ranks."""

import sys
from pathlib import Path

from windtunnel.attempt.pack import run_pack
from windtunnel.errors import WindtunnelError

sys.path.insert(0, str(Path(__file__).parent))
from fake_trials import RANK

if __name__ == "__main__":
    try:
        folders = [Path(word) for word in sys.argv[1:] if word != "--succeeds"]
        sys.exit(run_pack(folders, rank_command=RANK, succeeds="--succeeds" in sys.argv))
    except WindtunnelError as error:
        sys.exit(str(error))
