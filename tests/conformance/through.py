"""The reference client with a tap in front of the server of a scenario: through.py MIDWIRE FOLDER URL."""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

START_S = 20


def main() -> int:
    midwire, folder, url = sys.argv[1:]
    parts = urlsplit(url)
    state = tempfile.mkdtemp(dir=folder)
    log = Path(state) / "tap.log"
    env = {**os.environ, "MIDWIRE_STATE_DIR": state}
    command = [midwire, "http", "--upstream", url, "--listen", "127.0.0.1:0", "--headless"]
    with log.open("w") as out:
        tap = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
    try:
        deadline = time.monotonic() + START_S
        while not (said := re.search(r"give clients (\S+)", log.read_text())):
            if tap.poll() is not None or time.monotonic() > deadline:
                print(log.read_text(), file=sys.stderr)
                return 2
            time.sleep(0.02)
        own = urlsplit(said[1])
        path = parts._replace(netloc=own.netloc).geturl()
        # Metadata and tokens of a protected server are for its own URL, which the tap leaves as it is.
        command = [midwire, "call", "--conformance", path, "--resource", url]
        return subprocess.run(command, check=False).returncode
    finally:
        tap.terminate()
        tap.wait(timeout=START_S)


if __name__ == "__main__":
    sys.exit(main())
