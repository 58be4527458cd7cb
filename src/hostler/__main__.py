"""`python -m hostler` is the command line, wherever the script `hostler` is not on the path."""

from hostler.cli.app import main

if __name__ == "__main__":
    main()
