"""`python -m pitlake demo` runs the command line, where it is installed."""

import subprocess
import sys

from .errors import LakeError
from .program import command


def main() -> int:
    """Runs `pitlake` with the arguments of this program; its exit code."""
    try:
        line = command()
    except LakeError as error:
        print(error, file=sys.stderr)
        return 2
    return subprocess.run([*line, *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
