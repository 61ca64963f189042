"""Reads a recording, independently of midwire's own reader, into what the wire carried."""

import base64
import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Message:
    """One JSON-RPC message, or an HTTP fact that carries none (`body` is None)."""

    n: int  # of the event that completed it
    dir: str
    stream: int | None
    body: dict | None

    @property
    def method(self) -> str | None:
        return self.body and self.body.get("method")

    @property
    def params(self) -> dict:
        return (self.body or {}).get("params") or {}

    @property
    def is_request(self) -> bool:
        return self.body is not None and "method" in self.body and "id" in self.body

    @property
    def is_answer(self) -> bool:
        return self.body is not None and ("result" in self.body or "error" in self.body)


def raw(event: dict) -> bytes:
    if "raw_b64" in event:
        return base64.b64decode(event["raw_b64"])
    return event.get("raw", "").encode()


@dataclass
class Recording:
    """Everything in one file."""

    events: list[dict]
    messages: list[Message] = field(default_factory=list)

    @staticmethod
    def read(path: Path) -> "Recording":
        events = [json.loads(line) for line in path.read_text().split("\n") if line]
        if "midwire" in events[0]:
            del events[0]
        recording = Recording(events)
        recording._read_messages()
        return recording

    def named(self, name: str) -> list[dict]:
        """The events of this name."""
        return [event for event in self.events if event.get("event") == name]

    @property
    def has_endpoint_event(self) -> bool:
        """The older HTTP+SSE: answers come on the stream that began with this event."""
        return any(raw(event).startswith(b"event: endpoint") for event in self.named("sse_chunk"))

    def requests(self, method: str, tool: str | None = None) -> list[Message]:
        return [
            m for m in self.messages if m.is_request and m.method == method and tool in (None, m.params.get("name"))
        ]

    def notifications(self, method: str) -> list[Message]:
        return [m for m in self.messages if m.method == method and not m.is_request]

    def answers(self, request: Message) -> list[Message]:
        """The answers to a request: the same id in the other direction."""
        return [m for m in self.messages if m.is_answer and m.dir != request.dir and m.body["id"] == request.body["id"]]

    def progress(self, request: Message) -> list[Message]:
        token = (request.params.get("_meta") or {}).get("progressToken")
        return [m for m in self.notifications("notifications/progress") if m.params["progressToken"] == token]

    def is_before(self, first: Message, second: Message) -> bool:
        """Their order on the wire; one read may have brought both."""
        return self.messages.index(first) < self.messages.index(second)

    def _read_messages(self) -> None:
        pending: dict[tuple, bytes] = {}  # what is unfinished, by direction and exchange
        kinds: dict[int, str] = {}  # content type and encoding of an exchange's answer
        for event in self.events:
            n, way, stream = event["n"], event.get("dir"), event.get("stream")
            name, key = event.get("event"), (way, stream)
            if name is None and way in ("c2s", "s2c"):
                *lines, pending[key] = (pending.pop(key, b"") + raw(event)).split(b"\n")
                for line in lines:
                    self._add(n, way, stream, line)
            elif name == "request":
                body = event.get("body") or base64.b64decode(event.get("body_b64", ""))
                if body:
                    self._add(n, way, stream, body)
            elif name == "body":
                pending[key] = pending.get(key, b"") + raw(event)
            elif name == "response_head":
                headers = {k.lower(): v for k, v in fields(event["headers"])}
                kinds[stream] = headers.get("content-type", "") + ";" + headers.get("content-encoding", "")
                if ("c2s", stream) in pending:
                    self._add(n, "c2s", stream, pending.pop(("c2s", stream)))
            elif name == "sse_chunk":
                text = (pending.pop(key, b"") + raw(event)).replace(b"\r\n", b"\n")
                *blocks, pending[key] = text.split(b"\n\n")
                for block in blocks:
                    data = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
                    if any(data):
                        self._add(n, way, stream, b"\n".join(data))
            elif name == "server_closed" and kinds.get(stream, "").startswith("application/json"):
                text = pending.pop(("s2c", stream), b"")
                text = gzip.decompress(text) if "gzip" in kinds[stream] else text
                self._add(n, "s2c", stream, text)

    def _add(self, n: int, way: str, stream: int | None, text: bytes | str) -> None:
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        self.messages.append(Message(n, way, stream, body))


def fields(headers) -> list[tuple[str, str]]:
    """Header fields, whichever way they are written: an object of values or of lists of values."""
    found = []
    for name, value in headers.items() if isinstance(headers, dict) else headers:
        found.extend((name, one) for one in (value if isinstance(value, list) else [value]))
    return found
