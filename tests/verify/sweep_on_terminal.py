"""A sweep as a person sees it: on a terminal its board stands at the bottom and is drawn in its place.

usage: sweep_on_terminal.py SOURCE_DIR ROUX
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

RECIPE = """
run_name: tiny
model: {type: mlp, hidden: [8]}
data: {train: {type: synthetic, task: regression, num_samples: 64}, val: {type: synthetic, task: regression, num_samples: 64}}
loss: mse
optimizer: {type: adamw, lr: 0.01}
training: {max_steps: 400, micro_batch_size: 32}
eval: {eval_steps: 50}
sweep: {parameters: {optimizer.lr: {values: [0.001, 0.01, 0.1]}}}
"""
UP = re.compile(r"\r\x1b\[(\d+)A")


def on_terminal(command, folder, columns=100, rows=24, **environment):
    """All that the command writes to a terminal of that size, and its exit status."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(command, cwd=folder, stdin=child, stdout=child, stderr=child, start_new_session=True,
                               env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})
    os.close(child)
    written = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(parent)
    return written.decode().replace("\r\n", "\n"), process.wait()


def screen_of(text, columns):
    """What stands on the terminal at the end: a terminal that knows what the board needs, and nothing else."""
    lines, row, column = [[]], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if part == "\n":
            row, column = row + 1, 0
            if row == len(lines):
                lines.append([])
        elif part == "\r":
            column = 0
        elif part.startswith("\x1b["):
            if part[-1] == "A":
                row -= int(part[2:-1])
                assert row >= 0, "the board went above the screen"
            elif part[-1] == "K":
                del lines[row][column:]
            elif part[-1] == "J":
                del lines[row][column:]
                del lines[row + 1:]
            else:
                assert part[-1] == "m", part
        else:
            assert column + len(part) <= columns, ("a line of the board is too long", part)
            line = lines[row]
            line.extend(" " * (column - len(line)))
            line[column:column + len(part)] = part
            column += len(part)
    return ["".join(line).rstrip() for line in lines]


def board_part(text):
    """From the sweep's first word on: what stands before it is the log's, whose lines may be long."""
    return text[text.index("\n", text.index("runs/sweeps/")) + 1:]


def main():
    roux = str(pathlib.Path(sys.argv[2]).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "tiny.yaml").write_text(RECIPE)
        run = [roux, "sweep", "run", "tiny.yaml", "--new"]
        text, status = on_terminal(run, folder, columns=200)
        assert status == 0, text
        assert UP.search(text), "nothing was drawn in its place"
        assert "of 3 done, 1 running" in text, text
        screen = screen_of(board_part(text), 200)
        assert sum("of 3 done" in line for line in screen) == 3, screen  # the log's lines stay, the board went
        assert not any("running" in line for line in screen), screen
        assert any(line.startswith("best val/loss") for line in screen), screen

        text, status = on_terminal(run, folder, columns=200, NO_COLOR="1")
        assert status == 0 and UP.search(text) and "m" not in re.findall(r"\x1b\[[0-9;]*([A-Za-z])", text), text
        for words, environment, columns in ((["-q"], {}, 200), ([], {"TERM": "dumb"}, 200), ([], {}, 50),
                                            (["--log-format", "json"], {}, 200)):
            text, status = on_terminal(run + words, folder, columns=columns, **environment)
            assert status == 0 and not UP.search(text), (words, environment, columns, text)
        text, status = on_terminal([roux, "sweep", "show", "--watch"], folder)
        assert status == 0 and "3 of 3 done" in text and not UP.search(text), text
        done = subprocess.run([roux, "sweep", "show", "--watch"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0 and "3 of 3 done" in done.stdout and "\x1b" not in done.stdout, done
    print("the board of a sweep stands in its place, and only on a terminal that can have it")


if __name__ == "__main__":
    main()
