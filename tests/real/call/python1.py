"""A server on the Python SDK 1, for the reference client.

    python1.py stdio
    python1.py http PORT
"""

import sys

import anyio
from mcp.server.fastmcp import Context, FastMCP

transport, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = FastMCP("real-python1", host="127.0.0.1", port=port, log_level="ERROR")

# What became of each call that gave a key.
fates: dict[str, str] = {}


@server.tool()
async def echo(text: str) -> str:
    """Says the text back."""
    return text


@server.tool()
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


@server.tool()
async def fate(key: str) -> str:
    """What became of the call with this key; waits up to 1 s for its end."""
    with anyio.move_on_after(1):
        while fates.get(key) == "running":
            await anyio.sleep(0.01)
    return fates.get(key, "unknown")


server.run("stdio" if transport == "stdio" else "streamable-http")
