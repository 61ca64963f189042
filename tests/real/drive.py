"""Runs every scenario with every pair of real peers, directly and with midwire in the path.

The client must see the same both ways, and the recording must show what happened.
"""

import argparse
import itertools
import json
import logging
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import anyio
from peers import PAIRS, Pair, Setup, route
from recording import Recording
from scenarios import SCENARIOS, Scenario


def is_complete(recording: Recording) -> None:
    """What holds for every recording that ended in order."""
    numbers = [event["n"] for event in recording.events]
    assert numbers == list(range(1, len(numbers) + 1)), "causal numbers have holes"
    times = [event["t_ms"] for event in recording.events]
    assert times == sorted(times), "time runs backwards"
    assert not recording.named("gap"), recording.named("gap")
    last = recording.events[-1]
    assert last.get("event") == "capture_end" and last.get("complete") is True, f"ends with {last}"


def faults(pair: str) -> set[str]:
    """Rules that peers of this pair really break: `faults.tsv` beside this file says which and why."""
    rows = (Path(__file__).parent / "faults.tsv").read_text().splitlines()[1:]
    words = [row.split("\t") for row in rows]
    return {rule for peers, rule, _ in words if peers in pair}


async def has_no_false_alarm(setup: Setup, pair: str, paths: list[Path]) -> None:
    """`midwire check` finds no error and no warning in healthy traffic, but for known faults."""
    check = await anyio.run_process([setup.midwire, "check", "--format", "json", *paths], check=False)
    assert check.returncode in (0, 1), f"check ended with {check.returncode}: {check.stderr.decode()}"
    found = [f for f in json.loads(check.stdout) if f["severity"] != "hint" and f["rule"] not in faults(pair)]
    told = "\n".join(f"{f['rule']} {f['severity']}: {f['message']}" for f in found)
    assert not found, f"false alarms, or faults to be named in faults.tsv:\n{told}"


async def compare(scenario: Scenario, pair: Pair, setup: Setup, tag: str) -> None:
    seen: dict[bool, object] = {}

    async def one_way(is_through: bool) -> None:
        name = f"{tag}-{'through' if is_through else 'direct'}"
        async with route(pair, setup, name, is_through) as way:
            with anyio.fail_after(60):
                seen[is_through] = await scenario.run(way)

    if setup.midwire.name != "none":
        await one_way(True)
    await one_way(False)
    if setup.midwire.name == "none":
        print(json.dumps(seen[False])[:600])
        return
    assert seen[True] == seen[False], f"with midwire:    {seen[True]}\n  without midwire: {seen[False]}"
    # A second run of the same command records beside the first.
    paths = sorted(setup.scratch.glob(f"{tag}-through*.mw.jsonl"), key=lambda path: (len(path.name), path))
    runs = [await anyio.to_thread.run_sync(Recording.read, path) for path in paths]
    for recording in runs:
        is_complete(recording)
    scenario.saw(pair, *runs)
    if scenario.is_healthy:
        await has_no_false_alarm(setup, pair.name, paths)


def innermost(error: BaseException) -> BaseException:
    """The fault itself, out of the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@dataclass
class Tally:
    """What has been run so far."""

    passed: int = 0
    failed: int = 0

    def add(self, name: str, seconds: float, error: BaseException | None) -> None:
        if error is None:
            self.passed += 1
            print(f"ok      {seconds:5.1f} s  {name}", flush=True)
            return
        self.failed += 1
        where = "".join(traceback.format_tb(error.__traceback__)[-2:])
        print(f"FAILED  {seconds:5.1f} s  {name}\n{where}  {type(error).__name__}: {error}", flush=True)


async def run(pairs: list[Pair], words: list[str], setup: Setup, tally: Tally) -> None:
    """One pair after another, one scenario after another."""
    for pair, scenario in itertools.product(pairs, SCENARIOS):
        name = f"{pair.name} {scenario.name}"
        if not scenario.is_for(pair) or not all(word in name for word in words):
            continue
        began, fault = time.monotonic(), None
        try:
            await compare(scenario, pair, setup, name.replace("/", "-").replace(" ", "-"))
        except Exception as error:
            fault = innermost(error)
        tally.add(name, time.monotonic() - began, fault)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--midwire", type=Path, required=True, help="the binary under test")
    parser.add_argument("--peers", type=Path, required=True, help="folder with the installed peers")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for recordings and logs")
    parser.add_argument("words", nargs="*", help="run only what has all of these words in its name")
    args = parser.parse_args()
    setup = Setup(args.midwire.absolute(), args.peers.absolute(), args.scratch.absolute())
    # What the client's SDK has to say goes beside the recordings.
    logging.basicConfig(filename=setup.scratch / "client.log")
    tally = Tally()
    async with anyio.create_task_group() as tasks:
        # Two at a time: scenarios wait more than they work.
        for is_stdio in (True, False):
            pairs = [pair for pair in PAIRS if (pair.transport == "stdio") == is_stdio]
            tasks.start_soon(run, pairs, args.words, setup, tally)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main))
