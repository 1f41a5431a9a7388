"""The Python that commands of the tests run: the one behind the environment's link.

Where `/tmp` is a command's own, an environment that lies there can't be seen by it.
"""

import os
import sys

PYTHON = os.path.realpath(sys.executable)
