"""A user at a terminal: at_terminal.py COMMAND... < SCRIPT

Lines of the script: `wait TEXT` until the command has shown it, `type TEXT`; TEXT may hold escapes such as \\x03. Prints
the exit status, and what was shown: without what only moves the cursor or colours, and with repeated words cut short.
"""
import ast
import os
import pty
import re
import select
import sys
import time

steps = [line.rstrip("\n").split(" ", 1) for line in sys.stdin]
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])
shown, seen = "", 0
deadline = time.monotonic() + 60


def read():
    """Waits for more; false when the command has ended."""
    global shown
    if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
        sys.exit(f"nothing came after {shown!r}")
    try:
        data = os.read(terminal, 65536)
    except OSError:
        return False
    shown += data.decode(errors="replace")
    return bool(data)


for verb, text in steps:
    text = ast.literal_eval('"' + text + '"')
    if verb == "type":
        os.write(terminal, text.encode())
        continue
    while text not in shown[seen:]:
        if not read():
            sys.exit(f"ended before {text!r}: {shown!r}")
    seen = shown.index(text, seen) + len(text)
while read():
    pass
print("exit status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", shown)
print(re.sub(r"\b(\w+ )\1{9,}", r"\1... ", shown), end="")
