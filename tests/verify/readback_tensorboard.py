"""What the tracker `tensorboard` writes, read by TensorBoard's own reader.

usage: readback_tensorboard.py SOURCE_DIR ROUX
"""

import struct
import tempfile

from lib.libraries import with_libraries
from lib.tracked import TrackedRun, arguments, check_points, read_back, write_everything


def single(value):
    """As a float32 holds it."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def check_points_of(run, found):
    # A name whose points were all taken back stays in its list, without any.
    scalars = {name: [point[:2] for point in points] for name, points in found["scalars"].items() if points}
    check_points(scalars, run.points(), single)


def check_everything(source, roux, folder):
    run = TrackedRun(roux, folder, ["tensorboard"])
    write_everything(run)
    run.finish()
    run.sync()
    found = read_back(source, "tensorboard", run.path / "tensorboard", "--strict")
    assert list(found) == ["."], list(found)
    found = found["."]
    check_points_of(run, found)
    assert found["text"]["sample/text_summary"] == [[5, ["To be, or *not*\nto | be: 🔥 خسارة"]]], found["text"]
    table = "| a \\| b | count |\n| --- | --- |\n| x | 1 |\n| y z | 2.5 |"
    assert found["text"]["confusion/text_summary"] == [[8, [table]]], found["text"]
    (histogram,) = found["histograms"]["weight blocks.0"]
    assert (histogram["step"], histogram["num"], histogram["counts"]) == (6, 10.0, [1, 2, 3, 4]), histogram
    assert (histogram["min"], histogram["max"], histogram["limits"]) == (-1.0, 1.0, [-0.5, 0.0, 0.5, 1.0]), histogram
    for index in range(3):
        ((step, width, height, _),) = found["images"][f"picture {index}"]
        assert (step, width, height) == (7, 3, 2 + index), found["images"]
    begun = found["hparams"]["_hparams_/session_start_info"]["sessionStartInfo"]
    parameters = run.parameters()
    assert set(begun["hparams"]) == set(parameters), set(begun["hparams"]) ^ set(parameters)
    for name, value in parameters.items():
        assert begun["hparams"][name] == (float(value) if isinstance(value, int) and not isinstance(value, bool) else value)
    end = found["hparams"]["_hparams_/session_end_info"]["sessionEndInfo"]
    assert end["status"] == "STATUS_SUCCESS", end
    run.sync()
    assert read_back(source, "tensorboard", run.path / "tensorboard", "--strict")["."] == found, "a sync of nothing new"
    return sum(map(len, found["scalars"].values()))


def check_resume(source, roux, folder):
    """Killed at step 8, resumed from step 5: what is beyond it comes once."""
    run = TrackedRun(roux, folder, ["tensorboard"])
    for step in range(1, 9):
        run.log(step, {"loss": step})
    run.commit()
    run.sync()
    run.kill()
    run.sync()
    run.resume(5, 0)
    for step in range(6, 12):
        run.log(step, {"loss": 100 + step})
    run.finish()
    run.sync()
    check_points_of(run, read_back(source, "tensorboard", run.path / "tensorboard", "--strict")["."])


def main():
    with_libraries()
    source, roux = arguments()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as resumed:
        count = check_everything(source, roux, whole)
        check_resume(source, roux, resumed)
    print(f"TensorBoard reads {count} points, a text, a table, pictures, a histogram and hyperparameters as run.db has them")


if __name__ == "__main__":
    main()
