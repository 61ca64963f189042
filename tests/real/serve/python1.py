"""A client on the 1.x line of the Python SDK against midwire's reference server.

Asked and told as `python2.py`. Runs in an environment of its own.
"""

import contextlib
import json
import sys
from datetime import timedelta

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@contextlib.asynccontextmanager
async def connect(asked: dict):
    if asked["transport"] == "stdio":
        command, *args = asked["command"]
        async with stdio_client(StdioServerParameters(command=command, args=args)) as streams:
            yield streams
    elif asked["transport"] == "sse":
        async with sse_client(asked["url"]) as streams:
            yield streams
    else:
        async with streamable_http_client(asked["url"]) as (read, write, _):
            yield read, write


async def code(call) -> object:
    """The code of the error that it ends with."""
    try:
        return repr(await call)
    except McpError as error:
        return error.error.code


async def answer_form(*_) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def answer_sampling(*_) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="four")
    return types.CreateMessageResult(role="assistant", content=text, model="none", stopReason="endTurn")


async def answer_roots(*_) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


async def main(asked: dict) -> None:
    seen: dict = {}
    logged: list = []
    changed: list = []

    async def on_log(params) -> None:
        logged.append(params.level)

    async def on_message(message) -> None:
        method = getattr(getattr(message, "root", None), "method", "")
        if method.endswith("changed") or method.endswith("updated"):
            changed.append(method.removeprefix("notifications/"))

    async with (
        connect(asked) as (read, write),
        ClientSession(
            read,
            write,
            elicitation_callback=answer_form,
            sampling_callback=answer_sampling,
            list_roots_callback=answer_roots,
            logging_callback=on_log,
            message_handler=on_message,
        ) as session,
    ):
        seen["version"] = (await session.initialize()).protocolVersion

        async def text(name: str, arguments: dict | None = None, **options) -> str:
            result = await session.call_tool(name, arguments or {}, **options)
            return result.content[0].text

        seen["tools"] = len((await session.list_tools()).tools) > 10
        seen["echo"] = await text("echo", {"text": "größe 日本"})
        seen["unknown"] = await code(session.call_tool("no-such-tool", {}))
        seen["fails"] = (await session.call_tool("fails", {})).isError
        seen["sum"] = (await session.call_tool("sum", {"numbers": [1, 2]})).structuredContent
        steps: list = []

        async def progress(value: float, total: float | None, _) -> None:
            steps.append(value)

        await text("slow", {"steps": 8, "step_ms": 10}, progress_callback=progress)
        seen["progress"] = steps == list(range(1, 9))
        seen["asked"] = await text("ask_user")
        seen["sampled"] = await text("ask_model")
        seen["rooted"] = await text("ask_roots")
        seen["pinged"] = await text("ping_client")
        await session.set_logging_level("warning")
        await text("logs")
        seen["logged"] = logged
        # This SDK tells the server nothing when it gives up.
        limit = timedelta(milliseconds=300)
        outcome = await code(session.call_tool("silent", {"ms": 600}, read_timeout_seconds=limit))
        seen["cancelled"] = isinstance(outcome, int)
        await anyio.sleep(0.5)
        seen["after"] = await text("echo", {"text": "after"})
        seen["resource"] = (await session.read_resource("notes://today")).contents[0].text
        seen["missing"] = await code(session.read_resource("notes://missing"))
        prompt = await session.get_prompt("letter", {"country": "Portugal"})
        seen["prompt"] = prompt.messages[0].content.text
        completed = await session.complete(
            types.PromptReference(type="ref/prompt", name="letter"), {"name": "country", "value": "j"}
        )
        seen["completed"] = len(completed.completion.values) > 0
        await session.send_ping()
        await session.subscribe_resource("notes://real")
        await text("note_write", {"name": "real", "text": "1"})
        await session.unsubscribe_resource("notes://real")
        await text("note_write", {"name": "real", "text": "2"})
        await text("note_delete", {"name": "real"})
        with anyio.move_on_after(5):
            while len(changed) < 3:
                await anyio.sleep(0.01)
        seen["changed"] = sorted(changed)
    print(json.dumps(seen))


anyio.run(main, json.loads(sys.argv[1]))
