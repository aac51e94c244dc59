"""How long an attempt waits for ranks to end, in seconds."""

FAILURE_GRACE_S = 3.0
"""Time that the other ranks have to end by themselves, and to say why, after one failed."""
STOP_GRACE_S = 25.0
"""Time that ranks have to save and end. Slurm's own KillWait is 30 s by default."""
PRESS_S = 3.0
"""Time after that between SIGTERM and SIGKILL."""
LINGER_S = 60.0
"""Time that the other ranks have after one ended well. srun is given the same as --wait."""
DRAIN_S = 5.0
"""Time for the last words of ranks that have ended: a stray process may hold their pipe open."""
