"""python -m dkl: the command line."""

from dkl.cli.main import run

if __name__ == "__main__":
    run()
