"""Real peers and the ways to join them: directly, or with midwire in the path."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

HERE = Path(__file__).parent
MODERN = "2026-07-28"
LEGACY = "2025-11-25"


@dataclass(frozen=True)
class Setup:
    """Where things are on this machine."""

    midwire: Path
    peers: Path  # holds the installed peers: `python`, `python1`, `node`
    scratch: Path


@dataclass(frozen=True)
class Tools:
    """How a server's own tools are asked for what a scenario needs: (name, arguments)."""

    server: str

    def echo(self, text: str):
        return ("echo", {"text" if self.server == "python" else "message": text})

    def count(self, steps: int, delay_ms: int, key: str):
        """Progress 1..steps, then an answer."""
        if self.server == "python":
            return ("count", {"steps": steps, "delay_ms": delay_ms, "key": key})
        return ("trigger-long-running-operation", {"duration": steps * delay_ms / 1000, "steps": steps})

    def silent(self, ms: int, key: str):
        """An answer after a while, nothing before."""
        if self.server == "python":
            return ("silent", {"ms": ms, "key": key})
        return ("trigger-long-running-operation", {"duration": ms / 1000, "steps": 1})

    def big(self, size: int, url: str):
        """An answer that holds `size` characters; `url` serves bytes for a server that packs files."""
        if self.server == "python":
            return ("big", {"size": size})
        return ("gzip-file-as-resource", {"name": "big.gz", "data": url, "outputType": "resource"})


@dataclass(frozen=True)
class Pair:
    """The Python client and one server, on one transport, in one era."""

    server: str  # "python" or "everything"
    transport: str  # "stdio", "http" (Streamable HTTP), or "sse" (the older HTTP+SSE)
    era: str

    @property
    def name(self) -> str:
        return f"{self.server}/{self.transport}/{self.era}"

    @property
    def tools(self) -> Tools:
        return Tools(self.server)

    @property
    def is_modern(self) -> bool:
        return self.era == MODERN

    @property
    def mode(self) -> str:
        """The client's `mode`."""
        return self.era if self.is_modern else "legacy"

    def command(self, setup: Setup, tag: str, port: int | None = None) -> list[str]:
        """The server's command line. `tag` is ignored by it and makes its process findable."""
        if self.server == "python":
            where = [self.transport] if port is None else [self.transport, str(port)]
            return [sys.executable, "-B", str(HERE / "server.py"), *where, tag]
        script = setup.peers / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
        name = {"stdio": "stdio", "http": "streamableHttp", "sse": "sse"}[self.transport]
        return ["node", str(script), name, tag]


PAIRS = [
    Pair("python", "stdio", MODERN),
    Pair("python", "stdio", LEGACY),
    Pair("python", "http", MODERN),
    Pair("python", "http", LEGACY),
    Pair("everything", "stdio", LEGACY),
    Pair("everything", "http", LEGACY),
    Pair("python", "sse", LEGACY),
]


# For server-everything: the size of file that its packing tool may fetch.
SERVER_ENV = {"GZIP_MAX_FETCH_SIZE": str(64 << 20)}


@dataclass
class Route:
    """One way from a client to a server of its own: everything that a scenario may use."""

    pair: Pair
    setup: Setup
    tag: str
    recording: Path | None  # None: no midwire in the path
    url: str | None = None
    stderr: Path = field(init=False)

    def __post_init__(self) -> None:
        self.stderr = self.setup.scratch / f"{self.tag}.stderr"

    @property
    def tools(self) -> Tools:
        return self.pair.tools

    @property
    def stdio_command(self) -> list[str]:
        command = self.pair.command(self.setup, self.tag)
        if self.recording is None:
            return command
        return [str(self.setup.midwire), "stdio", "--record", str(self.recording), "--", *command]

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A connected client."""
        with self.stderr.open("a") as stderr:
            if self.pair.transport == "sse":
                transport = sse_client(self.url)
            elif self.url is not None:
                # The client's own limit on one event is 1 MiB.
                transport = streamable_http_client(self.url, max_sse_event_size=None)
            else:
                command, *args = self.stdio_command
                transport = stdio_client(
                    StdioServerParameters(command=command, args=args, env=SERVER_ENV), errlog=stderr
                )
            async with Client(transport, mode=self.pair.mode) as client:
                yield client

    def server_pids(self) -> list[int]:
        """The processes of this route's server (midwire itself not among them)."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                args = (entry / "cmdline").read_bytes().split(b"\0")
                if self.tag.encode() in args and str(self.setup.midwire).encode() not in args:
                    found.append(int(entry.name))
        return found

    def kill_server(self) -> None:
        for pid in self.server_pids():
            os.kill(pid, signal.SIGKILL)

    async def is_server_gone(self, limit_s: float) -> bool:
        """Waits for the end of the server's process."""
        with anyio.move_on_after(limit_s):
            while self.server_pids():
                await anyio.sleep(0.02)
            return True
        return False

    def as_json(self) -> str:
        """For handing the route to another process."""
        return json.dumps(
            {
                "pair": [self.pair.server, self.pair.transport, self.pair.era],
                "setup": [str(self.setup.midwire), str(self.setup.peers), str(self.setup.scratch)],
                "tag": self.tag,
                "recording": self.recording and str(self.recording),
                "url": self.url,
            }
        )

    @staticmethod
    def from_json(text: str) -> "Route":
        fields = json.loads(text)
        recording = fields["recording"]
        return Route(
            Pair(*fields["pair"]),
            Setup(*map(Path, fields["setup"])),
            fields["tag"],
            recording and Path(recording),
            fields["url"],
        )


@contextlib.asynccontextmanager
async def route(pair: Pair, setup: Setup, tag: str, is_through: bool) -> AsyncIterator[Route]:
    """A way to a fresh server, direct or through midwire. At the end all processes are ended, and
    a recording is complete."""
    recording = setup.scratch / f"{tag}.mw.jsonl" if is_through else None
    way = Route(pair, setup, tag, recording)
    if pair.transport == "stdio":
        try:
            yield way
            # The tap ends by itself once the client has gone.
            if not await way.is_server_gone(8):
                raise AssertionError("the server outlived its client by 8 s")
        finally:
            way.kill_server()
        return
    async with contextlib.AsyncExitStack() as processes:
        stderr = processes.enter_context(way.stderr.open("a"))
        port = free_port()
        command = pair.command(setup, tag, port)
        await start(processes, stderr, port, command, env={"PORT": str(port), **SERVER_ENV})
        path = "sse" if pair.transport == "sse" else "mcp"
        way.url = f"http://127.0.0.1:{port}/{path}"
        if recording is not None:
            listen = free_port()
            tap = [str(setup.midwire), "http", "--upstream", way.url, "--listen", f"127.0.0.1:{listen}"]
            await start(processes, stderr, listen, [*tap, "--headless", "--record", str(recording)])
            way.url = f"http://127.0.0.1:{listen}/{path}"
        yield way


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def start(processes: contextlib.AsyncExitStack, stderr, port: int, command: list[str], env=None) -> None:
    """Starts a process that listens on `port`, and ends it with SIGTERM when the stack closes."""
    process = await anyio.open_process(
        command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, env={**os.environ, **(env or {})}
    )

    async def end() -> None:
        with anyio.CancelScope(shield=True):
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with anyio.move_on_after(5):
                await process.wait()
                return
            process.kill()
            raise AssertionError(f"{command[0]} outlived SIGTERM by 5 s")

    processes.push_async_callback(end)
    with anyio.move_on_after(20):
        while process.returncode is None:
            with contextlib.suppress(OSError):
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                return
            await anyio.sleep(0.02)
        raise AssertionError(f"{command[0]} ended with {process.returncode} before it listened")
    raise AssertionError(f"{command} does not listen on {port} after 20 s")
