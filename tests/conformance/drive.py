"""Runs each scenario of the conformance suite both ways, and holds the outcome against `expected.tsv`."""

import argparse
import csv
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# How long a process may take to say where it listens, and one scenario to run.
START_S, SCENARIO_S = 20, 120

# A check of the suite that did not hold. `WARNING`: something that only should hold did not.
BROKEN = {"FAILURE", "WARNING"}


@dataclass(frozen=True)
class Leg:
    """One role in one revision: which scenarios there are, and how midwire plays the role."""

    name: str
    role: str  # "Server" or "Client": the heading in the suite's list
    version: str
    # Arguments of `midwire serve http`.
    args: tuple[str, ...] = ()
    # Beginnings of the names of extension scenarios that belong to it.
    extensions: tuple[str, ...] = ()

    def has(self, scenario: str, tags: list[str]) -> bool:
        return self.version in tags or ("extension" in tags and scenario.startswith(self.extensions or ("\0",)))


LEGS = (
    Leg("server-modern", "Server", "2026-07-28", extensions=("tasks-",)),
    Leg("server-modern-sse", "Server", "2026-07-28", args=("--answers", "sse"), extensions=("tasks-",)),
    Leg("server-legacy", "Server", "2025-11-25", args=("--era", "legacy")),
    Leg("server-2025-06-18", "Server", "2025-06-18", args=("--era", "legacy")),
    Leg("server-2025-03-26", "Server", "2025-03-26", args=("--era", "legacy")),
    Leg("server-dual-modern", "Server", "2026-07-28", args=("--era", "dual"), extensions=("tasks-",)),
    Leg("server-dual-legacy", "Server", "2025-11-25", args=("--era", "dual")),
    Leg("client-modern", "Client", "2026-07-28", extensions=("auth/",)),
    Leg("client-legacy", "Client", "2025-11-25"),
)


@dataclass(frozen=True)
class Setup:
    midwire: Path
    suite: Path
    scratch: Path

    def conformance(self, *args: str, **more: object) -> "subprocess.CompletedProcess[str]":
        node = self.suite / "node_modules/.bin/node"
        index = self.suite / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        return subprocess.run([node, index, *args], capture_output=True, text=True, check=False, **more)


def scenarios(setup: Setup, leg: Leg) -> list[tuple[str, bool]]:
    """The scenarios of a leg, in the order of the suite; true: it belongs to an extension."""
    found, role = [], ""
    for line in setup.conformance("list").stdout.splitlines():
        if heading := re.match(r"(\w+) .*scenarios", line):
            role = heading[1]
        elif (row := re.match(r"  - (\S+) \[(.*)\]", line)) and role == leg.role:
            tags = row[2].split(",")
            if leg.has(row[1], tags):
                found.append((row[1], "extension" in tags))
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def running(setup: Setup, name: str, *args: str) -> Iterator[None]:
    """A midwire process that has said where it listens; ended in the end."""
    log = setup.scratch / f"{name}.log"
    env = {**os.environ, "MIDWIRE_STATE_DIR": str(setup.scratch / name)}
    with log.open("w") as out:
        process = subprocess.Popen([setup.midwire, *args], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
    try:
        deadline = time.monotonic() + START_S
        while "http://" not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not listen: {log.read_text()}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(timeout=START_S)


@contextmanager
def server(setup: Setup, leg: Leg, is_through: bool) -> Iterator[str]:
    """The URL of a reference server, behind the tap or not."""
    way = "through" if is_through else "direct"
    port, tap_port = free_port(), free_port()
    origins = [f"http://127.0.0.1:{port}", f"http://127.0.0.1:{tap_port}"]
    allowed = [word for origin in origins for word in ("--allow-origin", origin)]
    with ExitStack() as stack:
        listen = ("--listen", f"127.0.0.1:{port}")
        args = ("serve", "http", *listen, "--conformance", *allowed, *leg.args)
        stack.enter_context(running(setup, f"{leg.name}-{way}-server", *args))
        if is_through:
            record = setup.scratch / f"{leg.name}.mw.jsonl"
            upstream = ("--upstream", f"{origins[0]}/mcp", "--listen", f"127.0.0.1:{tap_port}")
            tap = ("http", *upstream, "--headless", "--record", str(record))
            stack.enter_context(running(setup, f"{leg.name}-tap", *tap))
        yield f"{origins[1 if is_through else 0]}/mcp"


@dataclass
class Outcome:
    """What the suite said about one scenario: check and status, in order."""

    checks: list[tuple[str, str]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def is_skipped(self) -> bool:
        """The suite itself has nothing to say."""
        return bool(self.checks) and all(status == "SKIPPED" for _, status in self.checks)

    def broken(self) -> set[str]:
        return {check for check, status in self.checks if status in BROKEN}


def judge(setup: Setup, leg: Leg, scenario: str, is_extension: bool, out: Path, *target: str) -> Outcome:
    """Runs one scenario against what is under test."""
    force = ["--force"] if is_extension else []
    args = [leg.role.lower(), *target, "--scenario", scenario, "--spec-version", leg.version, *force, "-o", str(out)]
    ran = setup.conformance(*args, timeout=SCENARIO_S)
    files = list(out.glob("**/checks.json"))
    outcome = Outcome()
    if len(files) != 1:
        outcome.checks = [("no-result", "FAILURE")]
        outcome.texts = {"no-result": (ran.stdout + ran.stderr)[-2000:]}
        return outcome
    for check in json.loads(files[0].read_text()):
        outcome.checks.append((check["id"], check["status"]))
        if check["status"] in BROKEN:
            outcome.texts.setdefault(check["id"], check.get("errorMessage") or "")
    return outcome


def client(setup: Setup, is_through: bool) -> str:
    """The command of the reference client, to which the suite adds the URL of its server."""
    if is_through:
        return f"{sys.executable} -B {Path(__file__).with_name('through.py')} {setup.midwire} {setup.scratch}"
    return f"{setup.midwire} call --conformance"


def one_way(setup: Setup, leg: Leg, chosen: list[tuple[str, bool]], is_through: bool) -> dict[str, Outcome]:
    way = "through" if is_through else "direct"
    if leg.role == "Client":
        command = client(setup, is_through)
        return {
            name: judge(setup, leg, name, extra, setup.scratch / leg.name / way / name, "--command", command)
            for name, extra in chosen
        }
    with server(setup, leg, is_through) as url:
        return {
            name: judge(setup, leg, name, extra, setup.scratch / leg.name / way / name, "--url", url)
            for name, extra in chosen
        }


def expected(leg: Leg) -> dict[tuple[str, str], str]:
    """Checks that are known not to hold, with the reason."""
    with (Path(__file__).parent / "expected.tsv").open(newline="") as text:
        rows = csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(row["scenario"], row["check"]): row["reason"] for row in rows if row["leg"] == leg.name}


def verdict(leg: Leg, name: str, direct: Outcome, through: Outcome, known: dict[tuple[str, str], str]) -> list[str]:
    """What is wrong with the outcome of a scenario; nothing: it is as it should be."""
    wrong = []
    if sorted(direct.checks) != sorted(through.checks):
        differences = sorted(set(direct.checks) ^ set(through.checks))
        wrong.append(f"not the same with the tap in the path: {differences}")
    listed = {check for scenario, check in known if scenario == name}
    broken = direct.broken() | through.broken()
    if "*" in listed:
        # The scenario is about something that midwire does not have.
        return wrong if broken else [f"{name} passes, but expected.tsv says that it does not"]
    for check in sorted(broken - listed):
        text = direct.texts.get(check) or through.texts.get(check, "")
        wrong.append(f"{check}: {text}")
    wrong += [f"{check} holds, but expected.tsv says that it does not" for check in sorted(listed - broken)]
    return wrong


def run(setup: Setup, leg: Leg, words: list[str]) -> tuple[int, int]:
    """Runs a leg; how many scenarios passed, and how many are not as they should be."""
    chosen = [(name, extra) for name, extra in scenarios(setup, leg) if not words or any(word in name for word in words)]
    known = expected(leg)
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda is_through: one_way(setup, leg, chosen, is_through), (False, True)))
    passed = wrong = 0
    for name, _ in chosen:
        complaints = verdict(leg, name, both[0][name], both[1][name], known)
        is_listed = any(scenario == name for scenario, _ in known)
        word = "listed" if is_listed else "skipped" if both[0][name].is_skipped() else "ok"
        word = "WRONG" if complaints else word
        wrong += bool(complaints)
        passed += word == "ok"
        print(f"{word:7} {leg.name} {name} ({len(both[0][name].checks)} checks)", flush=True)
        for complaint in complaints:
            print(f"        {complaint}", flush=True)
    gone = {scenario for scenario, _ in known} - {name for name, _ in scenarios(setup, leg)}
    for scenario in sorted(gone):
        wrong += 1
        print(f"WRONG   {leg.name} {scenario} is in expected.tsv, but not in the suite")
    return passed, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--midwire", type=Path, required=True, help="the binary under test")
    parser.add_argument("--suite", type=Path, required=True, help="folder with the installed suite")
    parser.add_argument("words", nargs="*", help="a leg, and words of which scenarios have one")
    args = parser.parse_args()
    scratch = args.suite.absolute() / "run"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    setup = Setup(args.midwire.absolute(), args.suite.absolute(), scratch)
    legs = [leg for leg in LEGS if leg.name in args.words] or list(LEGS)
    words = [word for word in args.words if word not in {leg.name for leg in LEGS}]
    results = [run(setup, leg, words) for leg in legs]
    passed, wrong = (sum(column) for column in zip(*results, strict=True))
    print(f"{passed} passed, {wrong} not as they should be")
    return 1 if wrong or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
