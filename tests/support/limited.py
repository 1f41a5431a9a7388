"""Be allowed few open files, then the program: `python -m support.limited SOFT HARD COMMAND …`."""

import resource
import sys

from support.warm_parent import run

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
    run(sys.argv[3:])
