"""``python -m tftriage``."""

import sys

from tftriage.cli import main

sys.exit(main())
