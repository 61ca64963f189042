"""Runs midwire's reference client against real servers, directly and with a tap in between.

The client must see what the table says, both ways, and `midwire check` must find no error and no
warning of the client in the recording.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import anyio
from drive import Tally, innermost, is_complete
from peers import HERE, SERVER_ENV, free_port, start
from recording import Recording

MODERN, LEGACY = "2026-07-28", "2025-11-25"

# How the client is told to find out the era, and what it must then speak with a server of both eras.
RULES = {"ask": [], "allow": ["--allow-legacy"], "legacy": ["--legacy"]}


@dataclass(frozen=True)
class Server:
    """One server on one transport."""

    name: str  # "python2", "python1", "typescript2", "everything"
    transport: str  # "stdio", "http", or "sse", the HTTP+SSE of 2024-11-05
    is_modern: bool  # it speaks 2026-07-28 beside the older revisions

    def command(self, peers: Path, port: int | None) -> list[str]:
        node = {"typescript2": "node2", "everything": "node"}.get(self.name)
        where = [self.transport] if port is None else [self.transport, str(port)]
        if self.name == "python2":
            return [sys.executable, "-B", str(HERE / "server.py"), *where]
        if self.name == "python1":
            return [str(peers / "python1/bin/python"), "-B", str(HERE / "call/python1.py"), *where]
        modules = peers / node / "node_modules"
        if self.name == "typescript2":
            return ["node", str(HERE / "call/typescript.mjs"), str(modules), *where]
        script = modules / "@modelcontextprotocol/server-everything/dist/index.js"
        name = {"stdio": "stdio", "http": "streamableHttp", "sse": "sse"}[self.transport]
        return ["node", str(script), name]

    def echo(self, text: str) -> list[str]:
        return ["echo", "--arg", f"{'message' if self.name == 'everything' else 'text'}={json.dumps(text)}"]

    def count(self, steps: int, delay_ms: int, key: str) -> list[str]:
        """Progress 1..steps, then an answer."""
        if self.name == "everything":
            arguments = {"duration": steps * delay_ms / 1000, "steps": steps}
            return ["trigger-long-running-operation", "--arguments", json.dumps(arguments)]
        return ["count", "--arguments", json.dumps({"steps": steps, "delay_ms": delay_ms, "key": key})]


SERVERS = [
    Server("python2", "stdio", True),
    Server("python2", "http", True),
    Server("python2", "sse", False),
    Server("python1", "stdio", False),
    Server("python1", "http", False),
    Server("typescript2", "stdio", True),
    Server("typescript2", "http", True),
    Server("everything", "stdio", False),
    Server("everything", "http", False),
    Server("everything", "sse", False),
]


@dataclass(frozen=True)
class Case:
    server: Server
    rule: str

    @property
    def name(self) -> str:
        return f"call/{self.server.name}/{self.server.transport}/{self.rule}"

    @property
    def version(self) -> str | None:
        """What must be spoken; `None`: the era is not established."""
        if self.rule == "legacy" or not self.server.is_modern:
            if self.rule == "ask":
                return None
            return "2024-11-05" if self.server.transport == "sse" else LEGACY
        return MODERN


@dataclass(frozen=True)
class Way:
    """How the client reaches a server: words that follow its own."""

    midwire: Path
    words: list[str]

    async def call(self, *args: str) -> tuple[int, dict]:
        where = self.words
        ran = await anyio.run_process([self.midwire, "call", "--json", *args, *where], check=False)
        try:
            return ran.returncode, json.loads(ran.stdout)
        except json.JSONDecodeError:
            raise AssertionError(f"{args}: {ran.returncode} {ran.stdout!r} {ran.stderr.decode()}") from None

    async def probe(self, *args: str) -> dict:
        words = self.words[1:] if self.words[0] == "--url" else self.words
        ran = await anyio.run_process([self.midwire, "probe", "--json", *args, *words], check=False)
        return json.loads(ran.stdout)


@contextlib.asynccontextmanager
async def way(case: Case, midwire: Path, peers: Path, scratch: Path, is_through: bool) -> AsyncIterator[Way]:
    """A server of its own for a case, behind the tap or not. Recordings begin with the case's name."""
    tag = f"{case.name.replace('/', '-')}-{'through' if is_through else 'direct'}"
    record = str(scratch / f"{tag}.mw.jsonl")
    if case.server.transport == "stdio":
        command = case.server.command(peers, None)
        tap = [str(midwire), "stdio", "--record", record, "--"] if is_through else []
        yield Way(midwire, ["--", *tap, *command])
        return
    async with contextlib.AsyncExitStack() as processes:
        log = processes.enter_context((scratch / f"{tag}.log").open("a"))
        port = free_port()
        env = {"PORT": str(port), **SERVER_ENV}
        await start(processes, log, port, case.server.command(peers, port), env=env)
        path = "sse" if case.server.transport == "sse" else "mcp"
        url = f"http://127.0.0.1:{port}/{path}"
        if is_through:
            listen = free_port()
            tap = [str(midwire), "http", "--upstream", url, "--listen", f"127.0.0.1:{listen}"]
            await start(processes, log, listen, [*tap, "--headless", "--record", record])
            url = f"http://127.0.0.1:{listen}/{path}"
        yield Way(midwire, ["--url", url])


def text(told: dict) -> object:
    return told["detail"]["content"][0]["text"] if told["outcome"] == "complete" else told


async def seen(case: Case, way: Way, is_through: bool) -> None:
    """Does everything, and holds it against what must be seen."""
    rule = RULES[case.rule]
    limits = ["--discover-limit", "20000", "--initialize-limit", "20000"]
    status, told = await way.call("list", *rule, *limits)
    if case.version is None:
        assert status == 1 and told["era"]["version"] is None, told
        return
    assert status == 0 and told["era"]["version"] == case.version, told
    names = {item["name"] for item in told["detail"]["items"]}
    assert "echo" in names, names

    async def call(*args: str) -> tuple[int, dict]:
        return await way.call(*args, *rule, *limits)

    said = "größe 日本 \u2028"
    status, told = await call(*case.server.echo(said))
    assert status == 0 and text(told).endswith(said), told
    status, told = await call("tool", "no-such-tool")
    assert status == 1 and told["outcome"] in ("error", "complete"), told
    status, told = await call("--method", "midwire/none")
    assert status == 1 and told["outcome"] == "error", told
    status, told = await call(*case.server.count(5, 100, "p"), "--progress")
    assert status == 0 and told["progress"] == 5 and told["rejected"] == 0, told
    status, told = await call(*case.server.count(100, 100, "c"), "--progress", "--cancel-after", "650")
    assert status == 1 and told["detail"] == "cancelled by the user", told
    assert 400 <= told["requests"][-1]["elapsed_ms"] < 3000, told
    status, told = await call(*case.server.count(100, 100, "t"), "--timeout", "300", "--max", "700", "--progress")
    assert status == 1 and told["detail"] == "maximum timeout", told
    if case.server.name != "everything" and case.server.transport != "stdio":
        for key in ("c", "t"):
            status, told = await call("fate", "--arg", f"key={key}")
            assert status == 0 and text(told) == "cancelled", (key, told)
    if not is_through:
        # It does wrong things on purpose, which no recording of healthy traffic should hold.
        probed = await way.probe(*rule, *limits)
        assert probed["era"]["version"] == case.version, probed


def faults() -> set[tuple[str, str]]:
    """Rules that these servers really break, by the beginning of the case's name."""
    rows = (HERE / "call.tsv").read_text().splitlines()[1:]
    return {tuple(row.split("\t")[:2]) for row in rows}


async def judged(case: Case, midwire: Path, scratch: Path) -> None:
    """`midwire check` finds nothing but what is named in call.tsv."""
    paths = sorted(scratch.glob(f"{case.name.replace('/', '-')}-through*.mw.jsonl"))
    assert paths, "no recording"
    for path in paths:
        is_complete(await anyio.to_thread.run_sync(Recording.read, path))
    check = await anyio.run_process([midwire, "check", "--format", "json", *paths], check=False)
    found = [finding for finding in json.loads(check.stdout) if finding["severity"] != "hint"]
    known = {rule for name, rule in faults() if name in case.name}
    told = sorted({f"{f['rule']} {f['severity']}: {f['message']}" for f in found if f["rule"] not in known})
    assert not told, "findings that are not named in call.tsv:\n" + "\n".join(told)


async def run(case: Case, midwire: Path, peers: Path, scratch: Path) -> None:
    for is_through in (False, True):
        async with way(case, midwire, peers, scratch, is_through) as joined:
            with anyio.fail_after(300):
                await seen(case, joined, is_through)
    await judged(case, midwire, scratch)


async def some(cases: list[Case], words: list[str], args: argparse.Namespace, tally: Tally) -> None:
    for case in cases:
        if not all(word in case.name for word in words):
            continue
        began, fault = time.monotonic(), None
        try:
            await run(case, args.midwire.absolute(), args.peers.absolute(), args.scratch.absolute())
        except Exception as error:
            fault = innermost(error)
        tally.add(case.name, time.monotonic() - began, fault)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--midwire", type=Path, required=True, help="the binary under test")
    parser.add_argument("--peers", type=Path, required=True, help="folder with the installed peers")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for recordings and logs")
    parser.add_argument("words", nargs="*", help="run only what has all of these words in its name")
    args = parser.parse_args()
    os.environ["MIDWIRE_STATE_DIR"] = str(args.scratch.absolute() / "state")
    os.environ.update(SERVER_ENV)
    tally = Tally()
    cases = [Case(server, rule) for server in SERVERS for rule in RULES]
    async with anyio.create_task_group() as tasks:
        for is_stdio in (True, False):
            chosen = [case for case in cases if (case.server.transport == "stdio") == is_stdio]
            tasks.start_soon(some, chosen, args.words, args, tally)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed or not tally.passed else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main))
