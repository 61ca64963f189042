"""A client on the 2.x line of the Python SDK against midwire's reference server.

    python2.py '{"mode": "legacy", "transport": "http", "url": "…"}'
    python2.py '{"mode": "auto", "transport": "stdio", "command": ["…"]}'

Prints what it has seen as one JSON object.
"""

import json
import sys

import anyio
from mcp import Client, types
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


def transport(asked: dict):
    if asked["transport"] == "stdio":
        command, *args = asked["command"]
        return stdio_client(StdioServerParameters(command=command, args=args))
    return sse_client(asked["url"]) if asked["transport"] == "sse" else streamable_http_client(asked["url"])


async def code(call) -> object:
    """The code of the error that it ends with."""
    try:
        return repr(await call)
    except MCPError as error:
        return error.error.code


async def answer_form(*_) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def answer_sampling(*_) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="four")
    return types.CreateMessageResult(role="assistant", content=text, model="none", stop_reason="endTurn")


async def answer_roots(*_) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///work")])


async def main(asked: dict) -> None:
    seen: dict = {}
    logged: list = []
    changed: list = []

    async def on_log(params) -> None:
        logged.append(params.level)

    async def on_message(message) -> None:
        method = getattr(message, "method", None) or getattr(getattr(message, "root", None), "method", "")
        if method.endswith("changed") or method.endswith("updated"):
            changed.append(method.removeprefix("notifications/"))

    client = Client(
        transport(asked),
        mode=asked["mode"],
        elicitation_callback=answer_form,
        sampling_callback=answer_sampling,
        list_roots_callback=answer_roots,
        logging_callback=on_log,
        message_handler=on_message,
        log_level="warning" if asked["era"] == "modern" else None,
    )
    async with client:
        is_legacy = client.protocol_version < "2026"
        seen["version"] = client.protocol_version

        async def text(name: str, arguments: dict | None = None, **options) -> str:
            result = await client.call_tool(name, arguments or {}, **options)
            return result.content[0].text

        seen["tools"] = len((await client.list_tools()).tools) > 10
        seen["echo"] = await text("echo", {"text": "größe 日本"})
        seen["unknown"] = await code(client.call_tool("no-such-tool", {}))
        seen["fails"] = (await client.call_tool("fails", {})).is_error
        seen["sum"] = (await client.call_tool("sum", {"numbers": [1, 2]})).structured_content
        steps: list = []

        async def progress(value: float, total: float | None, _) -> None:
            steps.append(value)

        await text("slow", {"steps": 8, "step_ms": 10}, progress_callback=progress)
        seen["progress"] = steps == list(range(1, 9))
        seen["asked"] = await text("ask_user")
        seen["sampled"] = await text("ask_model")
        seen["rooted"] = await text("ask_roots")
        if is_legacy:
            seen["pinged"] = await text("ping_client")
        if is_legacy:
            await client.set_logging_level("warning")
        await text("logs")
        seen["logged"] = logged
        with anyio.CancelScope() as scope:

            async def third(value: float, *_) -> None:
                if value == 3:
                    scope.cancel()

            await text("slow", {"steps": 400, "step_ms": 25}, progress_callback=third)
        seen["cancelled"] = scope.cancelled_caught
        seen["after"] = await text("echo", {"text": "after"})
        seen["resource"] = (await client.read_resource("notes://today")).contents[0].text
        seen["missing"] = await code(client.read_resource("notes://missing"))
        prompt = await client.get_prompt("letter", {"country": "Portugal"})
        seen["prompt"] = prompt.messages[0].content.text
        completed = await client.complete(
            types.PromptReference(type="ref/prompt", name="letter"), {"name": "country", "value": "j"}
        )
        seen["completed"] = len(completed.completion.values) > 0
        if is_legacy:
            await client.send_ping()
            await client.subscribe_resource("notes://real")
            await text("note_write", {"name": "real", "text": "1"})
            await client.unsubscribe_resource("notes://real")
            await text("note_write", {"name": "real", "text": "2"})
            await text("note_delete", {"name": "real"})
            with anyio.move_on_after(5):
                while len(changed) < 3:
                    await anyio.sleep(0.01)
            seen["changed"] = sorted(changed)
    print(json.dumps(seen))


anyio.run(main, json.loads(sys.argv[1]))
