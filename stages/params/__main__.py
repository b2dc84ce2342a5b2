"""`python -m stages.params`: whether the parameters of the project here fit their schema. Exit code
2 where not, with every problem on standard error."""

import sys

from stages import params
from stages.errors import reported

if __name__ == "__main__":
    sys.exit(reported(params.load))
