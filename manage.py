"""The commands of this deployment: `python manage.py help` lists them."""

import sys

from reliability.project.command_line import main

if __name__ == "__main__":
    sys.exit(main(sys.argv))
