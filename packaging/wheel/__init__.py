"""roux is a program, not a library: `roux --help`."""
import sys

print("roux is a program, not a library: call `roux --help` in a shell", file=sys.stderr)
