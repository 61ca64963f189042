"""Runs real clients against midwire's reference server, directly and with a tap in between.

Every client must see what the table says, both ways, and `midwire check` must find no error and
no warning in the recording.
"""

import argparse
import json
import sys
import time
import traceback
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
from drive import Tally, innermost, is_complete
from peers import HERE, free_port, start
from recording import Recording

MODERN, LEGACY = "2026-07-28", "2025-11-25"


@dataclass(frozen=True)
class Case:
    """One client on one transport, and the eras that the server speaks."""

    client: str  # "python2", "python1", "typescript2", "typescript1"
    mode: str  # how the client finds out the era
    transport: str  # "stdio", "http", "sse"
    server: str  # the server's --era

    @property
    def name(self) -> str:
        return f"serve/{self.client}/{self.mode}/{self.transport}/{self.server}"

    @property
    def version(self) -> str:
        """The revision that they must agree on."""
        if self.mode == "legacy" or self.server == "legacy" or self.transport == "sse":
            return LEGACY
        return MODERN


def cases() -> list[Case]:
    found = []
    for server in ("dual", "legacy", "modern"):
        for client, mode in (
            ("python2", "auto"),
            ("python2", MODERN),
            ("python2", "legacy"),
            ("python1", "legacy"),
            ("typescript2", "auto"),
            ("typescript2", "legacy"),
            ("typescript1", "legacy"),
        ):
            if server == {"legacy": "modern", MODERN: "legacy"}.get(mode):
                continue
            found += [Case(client, mode, transport, server) for transport in ("stdio", "http")]
    found += [Case(client, "legacy", "sse", "dual") for client in ("python2", "python1", "typescript1")]
    return found


def expected(case: Case) -> dict:
    is_legacy = case.version == LEGACY
    told = {
        "tools": True,
        "echo": "größe 日本",
        "unknown": -32602,
        "fails": True,
        "sum": {"sum": 3, "count": 2},
        "progress": True,
        "asked": "Hello, Ada",
        "sampled": "The model says: four",
        "rooted": "file:///work",
        "logged": ["warning", "error", "critical", "alert", "emergency"],
        "cancelled": True,
        "after": "after",
        "resource": "Read the specification",
        # TypeScript 2 tells the older code as the newer one.
        "missing": -32002 if is_legacy and case.client != "typescript2" else -32602,
        "prompt": "Write a letter from Portugal.",
        "completed": True,
    }
    if is_legacy:
        told["pinged"] = "the client is there"
        told["changed"] = ["resources/list_changed", "resources/list_changed", "resources/updated"]
    return told


async def run_client(case: Case, peers: Path, stderr, place: dict) -> dict:
    era = "legacy" if case.version == LEGACY else "modern"
    asked = {"mode": case.mode, "era": era, "transport": case.transport, **place}
    language, sdk = case.client[:-1], int(case.client[-1])
    if language == "python":
        python = peers / ("python" if sdk == 2 else "python1") / "bin/python"
        command = [str(python), "-B", str(HERE / "serve" / f"{case.client}.py")]
    else:
        asked |= {"sdk": sdk, "node_modules": str(peers / "node/node_modules")}
        command = ["node", str(HERE / "serve/typescript.mjs")]
    with anyio.fail_after(60):
        done = await anyio.run_process([*command, json.dumps(asked)], stderr=stderr)
    seen = json.loads(done.stdout)
    version = seen.pop("version", case.version)  # not every SDK tells
    assert version == case.version, f"agreed on {version}"
    return seen


async def one_way(case: Case, midwire: str, peers: Path, scratch: Path, is_through: bool) -> list[Path]:
    """Runs a client; the recordings of the tap."""
    tag = f"{case.name.replace('/', '-')}-{'through' if is_through else 'direct'}"
    recording = scratch / f"{tag}.mw.jsonl"
    with (scratch / f"{tag}.stderr").open("w") as stderr:
        async with AsyncExitStack() as processes:
            if case.transport == "stdio":
                command = [midwire, "serve", "stdio", "--max-progress", "0", "--era", case.server]
                if is_through:
                    command = [midwire, "stdio", "--record", str(recording), "--", *command]
                place = {"command": command}
            else:
                port = free_port()
                serve = [midwire, "serve", "http", "--max-progress", "0", "--era", case.server]
                serve += ["--listen", f"127.0.0.1:{port}"]
                await start(processes, stderr, port, serve)
                path = "sse" if case.transport == "sse" else "mcp"
                place = {"url": f"http://127.0.0.1:{port}/{path}"}
                if is_through:
                    listen = free_port()
                    tap = [midwire, "http", "--upstream", place["url"], "--listen", f"127.0.0.1:{listen}"]
                    await start(processes, stderr, listen, [*tap, "--headless", "--record", str(recording)])
                    place = {"url": f"http://127.0.0.1:{listen}/{path}"}
            seen = await run_client(case, peers, stderr, place)
        wanted = expected(case)
        differing = {key: (seen.get(key), wanted.get(key)) for key in {*seen, *wanted} if seen.get(key) != wanted.get(key)}
        assert not differing, f"seen and expected: {differing}"
    return sorted(scratch.glob(f"{tag}*.mw.jsonl"), key=lambda path: (len(path.name), path))


def known() -> list[list[str]]:
    """Faults of real clients: `serve.tsv` beside this file says which and why."""
    return [row.split("\t") for row in (HERE / "serve.tsv").read_text().splitlines()[1:]]


async def run(case: Case, midwire: str, peers: Path, scratch: Path) -> None:
    await one_way(case, midwire, peers, scratch, False)
    paths = await one_way(case, midwire, peers, scratch, True)
    assert paths, "no recording"
    for path in paths:
        is_complete(Recording.read(path))
    check = await anyio.run_process([midwire, "check", "--format", "json", *map(str, paths)], check=False)
    assert check.returncode in (0, 1), f"check ended with {check.returncode}: {check.stderr.decode()}"
    faults = {rule for words, rule, _ in known() if all(word in case.name for word in words.split())}
    found = [f for f in json.loads(check.stdout) if f["severity"] != "hint" and f["rule"] not in faults]
    told = "\n".join(f"{f['rule']} {f['severity']}: {f['message']}" for f in found)
    assert not found, f"findings:\n{told}"


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--midwire", type=Path, required=True, help="the binary under test")
    parser.add_argument("--peers", type=Path, required=True, help="folder with the installed peers")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for recordings and logs")
    parser.add_argument("words", nargs="*", help="run only what has all of these words in its name")
    args = parser.parse_args()
    tally = Tally()
    turns = anyio.Semaphore(2)

    async def take(case: Case) -> None:
        async with turns:
            began, fault = time.monotonic(), None
            try:
                await run(case, str(args.midwire.absolute()), args.peers.absolute(), args.scratch.absolute())
            except Exception as error:
                fault = innermost(error)
                if not isinstance(fault, AssertionError):
                    traceback.print_exception(fault)
            tally.add(case.name, time.monotonic() - began, fault)

    async with anyio.create_task_group() as tasks:
        for case in cases():
            if all(word in case.name for word in args.words):
                tasks.start_soon(take, case)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main))
