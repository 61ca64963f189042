#!/usr/bin/env python3
"""Rows 2 to 6 and 11: what the stdio tap costs, beside no tap and a minimal two-thread byte pump.

    WIREBENCH=/path/to/wirebench tests/bench/stdio.py [ROUNDS]

Needs `cargo build --release --bins --examples` before. All processes of a run share one core, except where a
row says otherwise; the arms take turns within each round; a figure is the median over the rounds of the
difference or ratio to the same round. Exit 0: every "must" is met, 1: one is missed, 2: something is not there.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

from rows import CORE, TARGET, WIREBENCH, are_built, fail, judge, median

PIPELINED = 100_000
STARTS = 31

CASES = {
    "small": ["--payload", "200", "--requests", "20000", "--warmup", "500"],
    "mid": ["--payload", "10000", "--requests", "10000", "--warmup", "300"],
    "flight": ["--payload", "200", "--concurrency", "16", "--requests", "40000", "--warmup", "1000"],
    "big": ["--payload", "1000000", "--requests", "200", "--warmup", "10"],
}


class Arms:
    """The server's command, bare and behind the floor and the tap."""

    def __init__(self, folder):
        server = f"{WIREBENCH} stdio-server"
        self.record = f"{folder}/bench.mw.jsonl"
        self.commands = {
            "direct": server,
            "floor": f"{TARGET}/examples/floor-stdio {server}",
            "tap": f"{TARGET}/midwire stdio --record {self.record} -- {server}",
        }

    def run(self, arm, arguments, is_pinned=True):
        pathlib.Path(self.record).unlink(missing_ok=True)
        pin = ["taskset", "-c", CORE] if is_pinned else []
        command = [WIREBENCH, "stdio-client", "--cmd", self.commands[arm], "--label", arm, *arguments]
        done = subprocess.run([*pin, *command], capture_output=True, text=True)
        if done.returncode != 0:
            fail(f"{arm}: {done.stderr}")
        answer = json.loads(done.stdout)
        if not answer["check"]["verbatim"]:
            fail(f"{arm}: not verbatim: {answer['check']}")
        return answer

    def first_answer_ms(self, arm):
        """From starting the command until its first answer is read."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
        pathlib.Path(self.record).unlink(missing_ok=True)
        began = time.perf_counter()
        words = ["taskset", "-c", CORE, *self.commands[arm].split()]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            server.stdin.write(json.dumps(call).encode() + b"\n")
            server.stdin.flush()
            server.stdout.readline()
            took = time.perf_counter() - began
            server.stdin.close()
        return took * 1000

    def recorded_messages(self):
        """Whole messages in the recording of the last run of the tap, by direction."""
        counts = {"c2s": 0, "s2c": 0}
        with open(self.record, encoding="utf-8") as lines:
            for line in lines:
                event = json.loads(line)
                if event.get("raw", "").endswith("\n") and event["dir"] in counts:
                    counts[event["dir"]] += 1
                if event.get("event") == "gap":
                    fail(f"the recording has a gap: {line}")
        return counts


def measure(arms, rounds):
    names = list(arms.commands)
    seen = []
    for number in range(rounds):
        order = names[number % 3:] + names[: number % 3]
        one = {case: {arm: arms.run(arm, arguments) for arm in order} for case, arguments in CASES.items()}
        one["free"] = {arm: arms.run(arm, CASES["big"], is_pinned=False) for arm in order}
        one["free small"] = {arm: arms.run(arm, CASES["small"], is_pinned=False) for arm in order}
        seen.append(one)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return seen


def added(one, case, arm, quantile):
    return one[case][arm]["rtt_us"][quantile] - one[case]["direct"]["rtt_us"][quantile]


def cpu_us(one, arm):
    small = one["small"][arm]
    return small["middle"]["cpu_ms"] * 1000 / small["requests"]


def against_floor(seen, case, field):
    return median(seen, lambda one: one[case]["tap"][field] / one[case]["floor"][field])


def table(seen, arms):
    """Rows of (job, figure, must, aim, whether a larger figure is better)."""
    for case, job in [("small", "2a stdio 200 B, added p50, x pump"), ("mid", "2b stdio 10 KB, added p50, x pump")]:
        floor, tap = (median(seen, lambda one: added(one, case, arm, "p50")) for arm in ["floor", "tap"])
        print(f"{job[3:]}: pump {floor:.2f} us, tap {tap:.2f} us")
        yield job, tap / floor, 2.0, 1.2, False
    best = min(added(one, "small", "tap", "p99") / max(added(one, "small", "floor", "p99"), 0.1) for one in seen)
    yield "3  stdio 200 B, added p99, best round, x pump", best, 10.0, 4.0, False
    floor, tap = (median(seen, lambda one: cpu_us(one, arm)) for arm in ["floor", "tap"])
    print(f"CPU per round trip of 200 B: pump {floor:.2f} us, tap {tap:.2f} us")
    yield "4  CPU per message, all threads, x pump", tap / floor, 3.0, 1.5, False
    yield "5a stdio 16 in flight, msg/s, x pump", against_floor(seen, "flight", "msgs_per_s"), 0.5, 0.85, True
    arms.run("tap", ["--payload", "200", "--concurrency", "4000", "--requests", str(PIPELINED), "--warmup", "0"])
    messages = arms.recorded_messages()
    missing = 2 * PIPELINED - min(messages["c2s"], PIPELINED) - min(messages["s2c"], PIPELINED)
    if missing:
        fail(f"of 2 x {PIPELINED} pipelined messages {missing} are not in the recording")
    yield "5b 100,000 pipelined, missing in the recording", missing, 0, 0, False
    yield "6a stdio 1 MB results, one core, MB/s, x pump", against_floor(seen, "big", "mb_per_s"), 0.35, 0.6, True
    yield "6b stdio 1 MB results, all cores, MB/s, x pump", against_floor(seen, "free", "mb_per_s"), 0.8, 1.0, True
    starts = [{arm: arms.first_answer_ms(arm) for arm in ["direct", "tap"]} for _ in range(STARTS)]
    direct, tap = (median(starts, lambda one: one[arm]) for arm in ["direct", "tap"])
    print(f"first answer after the start: direct {direct:.2f} ms, tap {tap:.2f} ms")
    yield "11 first answer after the start, ms more", median(starts, lambda one: one["tap"] - one["direct"]), 5.0, 2.0, False
    floor, tap = (median(seen, lambda one: added(one, "free small", arm, "p50")) for arm in ["floor", "tap"])
    print(f"as a user sees it, on all cores, 200 B added p50: pump {floor:.1f} us, tap {tap:.1f} us")


def main():
    if not are_built("examples/floor-stdio"):
        print(__doc__, file=sys.stderr)
        return 2
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        arms = Arms(folder)
        return 0 if judge(table(measure(arms, rounds), arms)) else 1


if __name__ == "__main__":
    sys.exit(main())
