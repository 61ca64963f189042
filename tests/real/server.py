"""A server on the Python SDK whose tools make every kind of traffic, for each transport.

    server.py stdio [TAG]
    server.py http PORT [TAG]
    server.py sse PORT [TAG]

TAG only makes the process findable.
"""

import os
import sys

import anyio
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("real-python", version="1")

# What became of each call that gave a key: "running", "cancelled", "completed".
fates: dict[str, str] = {}


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Says the text back."""
    return text


@server.tool(structured_output=False)
async def count(steps: int, delay_ms: int, key: str, ctx: Context) -> str:
    """Counts up to `steps`, one progress for each, `delay_ms` apart."""
    fates[key] = "running"
    try:
        for step in range(1, steps + 1):
            await anyio.sleep(delay_ms / 1000)
            await ctx.report_progress(step, steps, f"step {step}")
    except anyio.get_cancelled_exc_class():
        fates[key] = "cancelled"
        raise
    fates[key] = "completed"
    return f"counted to {steps}"


@server.tool(structured_output=False)
async def silent(ms: int, key: str) -> str:
    """Says nothing for a while."""
    fates[key] = "running"
    try:
        await anyio.sleep(ms / 1000)
    except anyio.get_cancelled_exc_class():
        fates[key] = "cancelled"
        raise
    fates[key] = "completed"
    return "done"


@server.tool(structured_output=False)
async def fate(key: str) -> str:
    """What became of the call with this key; waits up to 1 s for its end."""
    with anyio.move_on_after(1):
        while fates.get(key) == "running":
            await anyio.sleep(0.01)
    return fates.get(key, "unknown")


@server.tool(structured_output=False)
async def big(size: int) -> str:
    """A text of `size` characters whose every part differs."""
    line = "".join(f"{n:07} " for n in range(size // 8 + 1))
    return line[:size]


@server.tool(structured_output=False)
async def die(after: int, ctx: Context) -> str:
    """Ends the process with status 3 after so many progress notifications."""
    for step in range(1, after + 1):
        await ctx.report_progress(step, None, None)
        await anyio.sleep(0.05)
    os._exit(3)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["stdio", *_]:
            server.run("stdio")
        case ["http", port, *_]:
            server.run("streamable-http", host="127.0.0.1", port=int(port))
        case ["sse", port, *_]:
            server.run("sse", host="127.0.0.1", port=int(port))
        case _:
            sys.exit("usage: server.py stdio | http PORT | sse PORT")
