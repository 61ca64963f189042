#!/usr/bin/env python3
"""Rows 7 to 10: what the HTTP tap costs, beside a direct connection and the minimal reverse proxy.

    WIREBENCH=/path/to/wirebench tests/bench/http.py [ROUNDS]

Needs `cargo build --release --bins --examples` before. All processes of a run share one core; the arms take
turns within each round; a figure is the median over the rounds of the difference or ratio to the same
round. Exit 0: every "must" is met, 1: one is missed, 2: something is not there.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time

from rows import CORE, TARGET, WIREBENCH, are_built, fail, judge, median

CASES = {
    "json": ["http-client", "--payload", "200", "--requests", "5000"],
    "sse": ["http-client", "--sse", "200", "--interval-us", "2000", "--requests", "5", "--warmup", "1"],
    "fast": ["http-client", "--sse", "5000", "--event", "200", "--requests", "10", "--warmup", "1"],
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    fail(f"nothing listens on port {port}")


class Arms:
    """The server, and what stands before it."""

    def __init__(self, folder):
        server, floor, tap = free_port(), free_port(), free_port()
        self.stats = f"http://127.0.0.1:{server}/stats"
        self.ports = {"direct": server, "floor": floor, "tap": tap}
        upstream = f"127.0.0.1:{server}"
        commands = {
            "direct": [WIREBENCH, "http-server", "--port", str(server)],
            "floor": [TARGET / "examples" / "floor-http", f"127.0.0.1:{floor}", upstream],
            "tap": [
                TARGET / "midwire", "http", "--headless", "--listen", f"127.0.0.1:{tap}",
                "--upstream", f"http://{upstream}/mcp", "--record", f"{folder}/bench.mw.jsonl",
            ],
        }
        self.running = {}
        for arm, command in commands.items():
            log = open(f"{folder}/{arm}.log", "w")
            self.running[arm] = subprocess.Popen(
                ["taskset", "-c", CORE, *map(str, command)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
            wait_for(self.ports[arm])

    def url(self, arm):
        return f"http://127.0.0.1:{self.ports[arm]}/mcp"

    def run(self, arm, arguments):
        command = ["taskset", "-c", CORE, WIREBENCH, *arguments, "--url", self.url(arm), "--label", arm]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"{arm}: {done.stderr}")
        answer = json.loads(done.stdout)
        if not answer["check"]["verbatim"]:
            fail(f"{arm}: not verbatim: {answer['check']}")
        return answer

    def slow(self, arm):
        arguments = ["slow-client", "--stats-url", self.stats, "--events", "110000"]
        if arm != "direct":
            arguments += ["--pid", str(self.running[arm].pid)]
        return self.run(arm, arguments)

    def stop(self):
        for process in self.running.values():
            process.terminate()
            process.wait()


def with_arms(job):
    with tempfile.TemporaryDirectory() as folder:
        arms = Arms(folder)
        try:
            return job(arms)
        finally:
            arms.stop()


def measure(arms, rounds):
    names = list(arms.ports)
    seen = []
    for number in range(rounds):
        order = names[number % 3:] + names[: number % 3]
        seen.append({case: {arm: arms.run(arm, arguments) for arm in order} for case, arguments in CASES.items()})
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return seen


def added(seen, case, arm, field, quantile):
    return median(seen, lambda one: one[case][arm][field][quantile] - one[case]["direct"][field][quantile])


def table(seen, slow):
    """Rows of (job, figure, unit, must, aim, whether a larger figure is better)."""
    floor, tap = added(seen, "json", "floor", "rtt_us", "p50"), added(seen, "json", "tap", "rtt_us", "p50")
    print(f"HTTP JSON call, added p50: floor {floor:.1f} us, tap {tap:.1f} us")
    yield "7  HTTP JSON call, added p50, x floor", tap / floor, 1.5, 1.05, False
    floor, tap = added(seen, "sse", "floor", "ev_us", "p50"), added(seen, "sse", "tap", "ev_us", "p50")
    print(f"SSE paced, added age p50: floor {floor:.1f} us, tap {tap:.1f} us")
    yield "8a SSE paced, added age p50, x floor", tap / floor, 2.0, 1.2, False
    p99 = min(one["sse"]["tap"]["ev_us"]["p99"] - one["sse"]["direct"]["ev_us"]["p99"] for one in seen)
    yield "8b SSE paced, added age p99, best round, ms", p99 / 1000, 1.0, 0.3, False
    burst = max(one["sse"]["tap"]["burst"]["p99"] / one["sse"]["direct"]["burst"]["p99"] for one in seen)
    yield "8c SSE paced, events in one read, x direct", burst, 1.0, 1.0, False
    fast = median(seen, lambda one: one["fast"]["tap"]["events_per_s"] / one["fast"]["floor"]["events_per_s"])
    yield "9  SSE unpaced, events/s, x floor", fast, 0.6, 0.85, True
    held = (slow["tap"]["held_between_bytes"] - slow["direct"]["held_between_bytes"]) / 1e6
    rss = slow["tap"]["rss_kb"]
    grown = max(rss["slow_end"], *(sample[1] for sample in slow["tap"]["series_ms_rss_handed_read"])) - rss["before"]
    print(f"slow reader: while it then takes the rest at full speed, memory peaks {rss['hwm'] / 1000:.1f} MB")
    yield "10a slow reader of 117 MB, memory growth, MB", grown / 1000, 8.0, 4.0, False
    yield "10b slow reader, taken beyond direct, MB", held, 8.0, 2.0, False


def main():
    if not are_built("examples/floor-http"):
        print(__doc__, file=sys.stderr)
        return 2
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seen = with_arms(lambda arms: measure(arms, rounds))
    # Fresh processes, whose memory has not grown before.
    slow = with_arms(lambda arms: {arm: arms.slow(arm) for arm in ["direct", "tap"]})
    return 0 if judge(table(seen, slow)) else 1


if __name__ == "__main__":
    sys.exit(main())
