"""What is done with a pair of peers, and what its recording must show afterwards.

`run` gives what the client has seen, as plain data: it must be the same with midwire in the path.
`saw` asserts on the recording.
"""

import contextlib
import hashlib
import http.server
import json
import random
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError
from peers import HERE, Pair, Route
from recording import Message, Recording, fields, raw

MIB = 1 << 20


@dataclass(frozen=True)
class Scenario:
    """One thing to do with a pair."""

    name: str
    run: Callable[[Route], Awaitable[object]]
    saw: Callable[..., None]  # of the pair and the recordings of all runs, the first run first
    is_healthy: bool = True  # `midwire check` may find no error in its recording
    is_for: Callable[[Pair], bool] = lambda pair: True


async def call(client: Client, tool: tuple[str, dict], **options) -> object:
    """A call's outcome as plain data."""
    try:
        result = await client.call_tool(*tool, **options)
    except MCPError as error:
        return {"error": error.error.code, "message": error.error.message}
    return result.model_dump(mode="json")


class Steps:
    """A progress callback that remembers, and at one step does something."""

    def __init__(self, at: int = 0, then: Callable[[], None] = lambda: None) -> None:
        self.seen: list = []
        self.at, self.then = at, then

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.append([progress, total, message])
        if len(self.seen) == self.at:
            self.then()


async def fate(client: Client, pair: Pair, key: str) -> object:
    """What the server says became of a call; the Python server alone can tell."""
    if pair.server != "python":
        return None
    outcome = await call(client, ("fate", {"key": key}))
    return outcome["content"][0]["text"]


def answered_once(recording: Recording, request: Message) -> Message:
    """Its only answer, which stands behind the request; on Streamable HTTP, in the same exchange."""
    answers = recording.answers(request)
    assert len(answers) == 1, f"{len(answers)} answers to {request.body['id']!r}"
    assert answers[0].stream == request.stream or recording.has_endpoint_event
    assert recording.is_before(request, answers[0]), f"answer {answers[0].n} before request {request.n}"
    return answers[0]


def only(messages: list[Message], what: str) -> Message:
    assert len(messages) == 1, f"{len(messages)} × {what}"
    return messages[0]


# --- list ---


async def run_list(route: Route) -> object:
    async with route.client() as client:
        tools = await client.list_tools()
        return {
            "tools": tools.model_dump(mode="json"),
            "prompts": [p.name for p in (await client.list_prompts()).prompts],
            "server": client.server_info and client.server_info.model_dump(mode="json"),
        }


def saw_list(pair: Pair, recording: Recording) -> None:
    answer = answered_once(recording, only(recording.requests("tools/list"), "tools/list"))
    assert len(answer.body["result"]["tools"]) >= 6
    is_legacy = bool(recording.requests("initialize"))
    assert is_legacy != pair.is_modern, "era on the wire"


# --- call ---


async def run_call(route: Route) -> object:
    texts = ["plain", "größe 日本 😀", "line\nbreak \u2028 \x7f \x00", '{"jsonrpc":"2.0","id":1}', " " * 3]
    async with route.client() as client:
        outcomes = [await call(client, route.tools.echo(text)) for text in texts]
        return [*outcomes, await call(client, ("no-such-tool", {}))]


def saw_call(pair: Pair, recording: Recording) -> None:
    requests = recording.requests("tools/call", "echo")
    assert len(requests) == 5
    texts = [answered_once(recording, request).body["result"]["content"][0]["text"] for request in requests]
    sent = [next(iter(request.params["arguments"].values())) for request in requests]
    assert all(text.endswith(sent) for text, sent in zip(texts, sent, strict=True))
    answered_once(recording, only(recording.requests("tools/call", "no-such-tool"), "unknown tool"))


# --- progress ---


async def run_progress(route: Route) -> object:
    steps = Steps()
    async with route.client() as client:
        outcome = await call(client, route.tools.count(20, 10, "p"), progress_callback=steps)
    return {"outcome": outcome, "seen": steps.seen}


def saw_progress(pair: Pair, recording: Recording) -> None:
    request = only(recording.requests("tools/call"), "call")
    answer = answered_once(recording, request)
    progress = recording.progress(request)
    assert [m.params["progress"] for m in progress] == list(range(1, 21))
    assert recording.is_before(request, progress[0]) and recording.is_before(progress[-1], answer)


# --- cancel ---


async def run_cancel(route: Route) -> object:
    async with route.client() as client:
        with anyio.CancelScope() as scope:
            steps = Steps(3, scope.cancel)
            await call(client, route.tools.count(400, 25, "c"), progress_callback=steps)
        after = await call(client, route.tools.echo("after"))
        return {
            "cancelled": scope.cancelled_caught,
            "seen": steps.seen[:3],  # more may be on the way
            "fate": await fate(client, route.pair, "c"),
            "after": after,
        }


def saw_cancel(pair: Pair, recording: Recording) -> None:
    request = recording.requests("tools/call")[0]
    assert len(recording.progress(request)) >= 3
    gave_up(recording, pair, request)
    answered_once(recording, recording.requests("tools/call", "echo")[0])


def gave_up(recording: Recording, pair: Pair, request: Message) -> None:
    """The client's signal that it gave up, as its transport and era have it."""
    cancels = recording.notifications("notifications/cancelled")
    if pair.transport == "http" and pair.is_modern:
        assert not cancels, "a cancel message on modern HTTP"
        closed = [e for e in recording.named("client_closed") if e.get("stream") == request.stream]
        assert len(closed) == 1 and closed[0]["n"] > request.n, f"client_closed of exchange {request.stream}: {closed}"
    else:
        cancel = only(cancels, "notifications/cancelled")
        assert cancel.params["requestId"] == request.body["id"]
        assert cancel.dir == "c2s" and cancel.n > request.n
    if pair.server == "python" and (pair.transport == "stdio" or pair.is_modern):
        assert not recording.answers(request), "an answer after the cancel"


# --- time-out ---


async def run_timeout(route: Route) -> object:
    async with route.client() as client:
        await client.list_tools()  # The server's start does not count.
        outcome = await call(client, route.tools.silent(2500, "t"), read_timeout_seconds=0.6)
        return {"outcome": outcome, "fate": await fate(client, route.pair, "t")}


def saw_timeout(pair: Pair, recording: Recording) -> None:
    gave_up(recording, pair, recording.requests("tools/call")[0])


# --- 50 parallel calls ---


async def run_parallel(route: Route) -> object:
    outcomes: dict[int, object] = {}

    async def one(client: Client, number: int) -> None:
        outcomes[number] = await call(client, route.tools.echo(f"call {number} {'x' * number * 10}"))

    async with route.client() as client:
        await client.list_tools()
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(one, client, number)
    return [outcomes[number] for number in range(50)]


def saw_parallel(pair: Pair, recording: Recording) -> None:
    requests = recording.requests("tools/call", "echo")
    assert len(requests) == 50 and len({str(request.body["id"]) for request in requests}) == 50
    for request in requests:
        text = next(iter(request.params["arguments"].values()))
        assert answered_once(recording, request).body["result"]["content"][0]["text"].endswith(text)


# --- large results ---


@contextlib.contextmanager
def served(data: bytes) -> Iterator[str]:
    """The URL of a file server for one file."""

    class File(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), File) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/file"
        server.shutdown()


def big(size: int) -> Scenario:
    async def run(route: Route) -> object:
        # Bytes that do not shrink, and have this size once they are text.
        with served(random.Random(size).randbytes(size * 3 // 4)) as url:
            async with route.client() as client:
                outcome = await call(client, route.tools.big(size, url))
        text = json.dumps(outcome)
        assert len(text) > size, text[:200]
        return {"length": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}

    def saw(pair: Pair, recording: Recording) -> None:
        answer = answered_once(recording, only(recording.requests("tools/call"), "call"))
        assert len(json.dumps(answer.body)) > size

    # On the older HTTP+SSE the Python client takes no event above 1 MiB.
    return Scenario(f"{size // MIB} MiB", run, saw, is_for=lambda pair: pair.transport != "sse")


# --- a request that the server refuses for its size ---


async def run_refused(route: Route) -> object:
    async with route.client() as client:
        return await call(client, route.tools.echo("x" * 12 * MIB))


def saw_refused(pair: Pair, recording: Recording) -> None:
    if pair.transport == "http":
        head = only([e for e in recording.named("response_head") if e["status"] == 413], "status 413")
        request = only([e for e in recording.named("request") if e["stream"] == head["stream"]], "its request")
        headers = {name.lower(): value for name, value in fields(request["headers"])}
        assert int(headers["content-length"]) > 12 * MIB
        return
    # It stops reading at its limit of 10 MiB and exits.
    sent = sum(len(raw(e)) for e in recording.events if "event" not in e and e["dir"] == "c2s")
    assert sent > 10 * MIB, sent
    assert [e["exit_code"] for e in recording.named("server_closed")] == [0]


# --- the client goes away in the middle of a stream ---


async def run_client_leaves(route: Route) -> object:
    """The client is another process, which is killed after its third progress."""
    command = [sys.executable, "-B", __file__, route.as_json()]
    async with await anyio.open_process(command, stderr=None) as worker:
        buffer = b""
        while buffer.count(b"\n") < 3:
            buffer += await worker.stdout.receive()
        worker.kill()
    if route.pair.transport == "stdio":
        return await route.is_server_gone(5)
    async with route.client() as client:
        return await fate(client, route.pair, "k")


async def leave(route: Route) -> None:
    """The killed client's part."""
    steps = Steps()

    async def tell(*step) -> None:
        await steps(*step)
        print(len(steps.seen), flush=True)

    async with route.client() as client:
        await call(client, route.tools.count(400, 25, "k"), progress_callback=tell)


def saw_client_leaves(pair: Pair, recording: Recording) -> None:
    request = recording.requests("tools/call")[0]
    assert len(recording.progress(request)) >= 3
    third = recording.progress(request)[2]
    closed = [e for e in recording.named("client_closed") if e.get("stream") == third.stream]
    # On stdio each of the client's two pipes may be told.
    assert closed and len({e["dir"] for e in closed}) == len(closed), closed
    assert closed[0]["n"] > third.n
    assert not recording.notifications("notifications/cancelled")


# --- the server goes away in the middle of a stream ---


async def run_server_dies(route: Route) -> object:
    async with route.client() as client:
        steps = Steps(2, route.kill_server)
        outcome = await call(client, route.tools.count(400, 25, "d"), progress_callback=steps)
        return {"outcome": outcome, "seen": steps.seen[:2]}


def saw_server_dies(pair: Pair, recording: Recording) -> None:
    request = recording.requests("tools/call")[0]
    assert not recording.answers(request)
    stream = recording.progress(request)[0].stream
    closed = [e for e in recording.named("server_closed") if e.get("stream") == stream]
    assert len(closed) == 1, f"server_closed of exchange {stream}: {closed}"
    if pair.transport == "stdio":
        assert closed[0].get("signal") == 9, closed
    else:
        assert closed[0].get("how") in ("eof", "reset"), closed


async def run_exit_status(route: Route) -> object:
    steps = Steps()
    async with route.client() as client:
        outcome = await call(client, ("die", {"after": 2}), progress_callback=steps)
    return {"outcome": outcome, "seen": steps.seen}


def saw_exit_status(pair: Pair, recording: Recording) -> None:
    request = recording.requests("tools/call")[0]
    assert len(recording.progress(request)) == 2
    closed = [e for e in recording.named("server_closed") if e.get("exit_code") is not None]
    assert [e["exit_code"] for e in closed] == [3], closed


# --- other clients, each a process of its own that prints what it has seen ---


async def run_other(route: Route, command: list[str]) -> dict:
    asked = {
        "node_modules": str(route.setup.peers / "node/node_modules"),
        **({"url": route.url} if route.url else {"command": route.stdio_command, "env": {}}),
    }
    with route.stderr.open("a") as stderr:
        done = await anyio.run_process([*command, json.dumps(asked)], stderr=stderr)
    return json.loads(done.stdout)


async def run_typescript(route: Route) -> dict:
    return await run_other(route, ["node", str(HERE / "client.mjs")])


def saw_typescript(pair: Pair, *runs: Recording) -> None:
    assert len(runs) == (2 if pair.transport == "stdio" else 1), f"{len(runs)} recordings"
    if pair.transport == "stdio":
        # It starts the command once only to ask for the era, and ends that run by a signal.
        probe = runs[0]
        answered_once(probe, only(probe.requests("server/discover"), "server/discover"))
        assert [e["signal"] for e in probe.named("signal")] == ["SIGTERM"]
        assert [e.get("signal") for e in probe.named("server_closed")] == [15]
        assert not runs[1].requests("server/discover")
    work = runs[-1]
    calls = work.requests("tools/call", "count")
    assert [m.params["progress"] for m in work.progress(calls[0])] == list(range(1, 11))
    answered_once(work, calls[0])
    gave_up(work, pair, calls[1])


async def run_python_v1(route: Route) -> dict:
    python = route.setup.peers / "python1/bin/python"
    return await run_other(route, [str(python), "-B", str(HERE / "client_v1.py")])


def saw_python_v1(pair: Pair, recording: Recording) -> None:
    call = only(recording.requests("tools/call", "count"), "count")
    assert [m.params["progress"] for m in recording.progress(call)] == list(range(1, 11))
    answered_once(recording, call)
    # This line of the SDK gives up a call without a word, and is answered after all.
    assert not recording.notifications("notifications/cancelled")
    answered_once(recording, only(recording.requests("tools/call", "silent"), "silent"))


SCENARIOS = [
    Scenario("list", run_list, saw_list),
    Scenario("call", run_call, saw_call),
    Scenario("progress", run_progress, saw_progress),
    Scenario("cancel", run_cancel, saw_cancel),
    Scenario("time-out", run_timeout, saw_timeout),
    Scenario("50 parallel", run_parallel, saw_parallel),
    big(MIB),
    big(20 * MIB),
    Scenario(
        "refused size",
        run_refused,
        saw_refused,
        is_healthy=False,
        is_for=lambda pair: pair.server == "everything",
    ),
    Scenario("client leaves", run_client_leaves, saw_client_leaves),
    Scenario("server dies", run_server_dies, saw_server_dies, is_healthy=False),
    Scenario(
        "exit status",
        run_exit_status,
        saw_exit_status,
        is_healthy=False,
        is_for=lambda pair: pair.server == "python" and pair.transport == "stdio",
    ),
    Scenario(
        "TypeScript client",
        run_typescript,
        saw_typescript,
        is_for=lambda pair: pair.server == "python" and pair.is_modern,
    ),
    Scenario(
        "Python 1.x client",
        run_python_v1,
        saw_python_v1,
        is_for=lambda pair: pair.server == "python" and not pair.is_modern and pair.transport != "sse",
    ),
]

if __name__ == "__main__":
    anyio.run(leave, Route.from_json(sys.argv[1]))
