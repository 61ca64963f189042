"""A client on the 1.x line of the Python SDK: lists, calls, watches progress, runs into a time-out.

    client_v1.py '{"url": "…"}'
    client_v1.py '{"command": ["…"], "env": {…}}'

Prints what it has seen as one JSON object. Runs in an environment of its own.
"""

import contextlib
import json
import sys
from datetime import timedelta

import anyio
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@contextlib.asynccontextmanager
async def connect(asked: dict):
    if "url" in asked:
        async with streamable_http_client(asked["url"]) as (read, write, _):
            yield read, write
        return
    command, *args = asked["command"]
    async with stdio_client(StdioServerParameters(command=command, args=args, env=asked.get("env"))) as streams:
        yield streams


async def main(asked: dict) -> None:
    seen: dict = {}
    async with connect(asked) as (read, write), ClientSession(read, write) as session:
        seen["version"] = (await session.initialize()).protocolVersion
        seen["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        seen["echo"] = (await session.call_tool("echo", {"text": "größe 日本"})).model_dump(mode="json")
        steps: list = []

        async def progress(*step) -> None:
            steps.append(step)

        counted = await session.call_tool(
            "count", {"steps": 10, "delay_ms": 10, "key": "a"}, progress_callback=progress
        )
        seen["count"] = [counted.content[0].text, steps]
        try:
            await session.call_tool(
                "silent", {"ms": 1000, "key": "b"}, read_timeout_seconds=timedelta(milliseconds=600)
            )
        except McpError as error:
            seen["time-out"] = [error.error.code, error.error.message]
        # The answer comes late; leaving before it would break this SDK's own reader.
        seen["fate"] = (await session.call_tool("fate", {"key": "b"})).content[0].text
        await anyio.sleep(0.1)
    print(json.dumps(seen))


anyio.run(main, json.loads(sys.argv[1]))
