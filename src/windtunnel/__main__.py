"""`python -m windtunnel`."""

import sys

from windtunnel.cli.main import main

sys.exit(main())
