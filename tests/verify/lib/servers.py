"""Real servers, started for as long as a block of code wants them."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading


@contextlib.contextmanager
def mlflow_server(folder, python=sys.executable):
    """Its address and its process. It says itself which port it has taken, and that it answers."""
    mlflow = pathlib.Path(python).parent / "mlflow"
    server = subprocess.Popen(
        [mlflow, "server", "--host", "127.0.0.1", "--port", "0", "--workers", "1", "--backend-store-uri",
         "sqlite:///db.sqlite", "--artifacts-destination", "./art"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"})  # which starts Python several times more
    reader = threading.Thread(target=server.stdout.read)  # a full pipe would stop the server
    try:
        said = []
        for line in server.stdout:
            said.append(line)
            found = re.search(r"running on (http://127\.0\.0\.1:\d+)", line)
            if found:
                reader.start()
                yield found.group(1)
                break
        else:
            raise AssertionError("mlflow server did not start: " + "".join(said))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        if reader.is_alive():
            reader.join()
        server.stdout.close()
