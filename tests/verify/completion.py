"""Completion as typed: bash, zsh and fish, each on a terminal of its own.

usage: completion.py SOURCE_DIR ROUX
"""

import os
import pathlib
import pty
import select
import shutil
import signal
import sys
import tempfile
import time

from lib.skip import skipped

PATIENCE_S = 60
SOURCE = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(roux completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "source <(roux completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "roux completion fish | source"),
}
# What is typed before a tabulator, and the line that then stands there.
TYPED = {"roux expl": "roux explain", "roux explain optimizer/adag": "roux explain optimizer/adagrad",
         "roux runs sho": "roux runs show", "roux list opt": "roux list optimizer", "roux run my_re": "roux run my_recipe.yaml"}
# What is typed before and after a tabulator, and what then stands there: no blank and no backslash at the `=`.
KEY = ("roux run my_recipe.yaml --set training.max_st", "7", "eps=7")
RECIPE = """model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic}}
loss: mse
optimizer: sgd
training: {max_steps: 2, micro_batch_size: 8}
"""


class Terminal:
    def __init__(self, command, folder, environment):
        self.said = ""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def wait_for(self, *words):
        """Until one of them has been said; forgets what comes before it."""
        end = time.monotonic() + PATIENCE_S
        while True:
            for word in words:
                if word in self.said:
                    self.said = self.said.split(word, 1)[1]
                    return
            ready, _, _ = select.select([self.descriptor], [], [], max(0, end - time.monotonic()))
            assert ready, (words, self.said)
            self.said += os.read(self.descriptor, 4096).decode(errors="replace")

    def close(self):
        os.close(self.descriptor)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def check(shell, roux, folder):
    command, source = SOURCE[shell]
    environment = {"PATH": f"{roux.parent}:/usr/bin:/bin", "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    terminal = Terminal(command, folder, environment)
    try:
        terminal.type(source + "; printf '%s_%s\\n' all set\n")
        terminal.wait_for("all_set")
        for typed, whole in TYPED.items():
            terminal.type(typed + "\t")
            # Some add what was missing, some write the word once more.
            terminal.wait_for(whole[len(typed):], whole.split()[-1])
            terminal.type("\x15")  # takes the line away
        before, after, then = KEY
        terminal.type(before + "\t" + after)
        terminal.wait_for(then)
    finally:
        terminal.close()


def main():
    roux = pathlib.Path(sys.argv[2]).resolve()
    missing = [shell for shell in SOURCE if not shutil.which(shell)]
    assert len(missing) < len(SOURCE), f"no shell to complete in: install one of {', '.join(SOURCE)}"
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "my_recipe.yaml").write_text(RECIPE)
        for shell in SOURCE:
            if shell not in missing:
                check(shell, roux, folder)
    print(f"completed in {', '.join(shell for shell in SOURCE if shell not in missing)}")
    if missing:
        sys.exit(skipped(f"not installed: {', '.join(missing)}"))


main()
