"""The program: `reactive-descheduler`, or `python -m reactive_descheduler`."""

from __future__ import annotations

from reactive_descheduler.cli import program


def main() -> None:
    """Run the command line and exit with its code (`cli.exit_codes`)."""
    program.main(prog_name="reactive-descheduler")


if __name__ == "__main__":
    main()
