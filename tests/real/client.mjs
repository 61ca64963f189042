// A client on the TypeScript SDK: lists, calls, watches progress, aborts a call in the middle.
//
//   node client.mjs '{"node_modules": "…", "url": "…"}'
//   node client.mjs '{"node_modules": "…", "command": ["…"], "env": {…}}'
//
// Prints what it has seen as one JSON object.

import { pathToFileURL } from "node:url";

const { node_modules, url, command, env } = JSON.parse(process.argv[2]);
const dist = (file) => import(pathToFileURL(`${node_modules}/@modelcontextprotocol/client/dist/${file}`));
const { Client, StreamableHTTPClientTransport } = await dist("index.mjs");
const { StdioClientTransport } = await dist("stdio.mjs");

const transport = url
    ? new StreamableHTTPClientTransport(new URL(url))
    : new StdioClientTransport({ command: command[0], args: command.slice(1), env, stderr: "ignore" });
const client = new Client(
    { name: "real-typescript", version: "1" },
    { versionNegotiation: { mode: "auto" } },
);
await client.connect(transport);

const call = (name, args, options) => client.callTool({ name, arguments: args }, options);
const seen = {};
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
seen.echo = await call("echo", { text: "größe 日本" });

let progress = 0;
seen.count = await call("count", { steps: 10, delay_ms: 10, key: "a" }, { onprogress: () => progress++ });
// Over stdio this SDK may lose progress that arrives in one read with the answer.
seen.progress_is_seen = progress > 5;

const abort = new AbortController();
const steps = [];
const onprogress = ({ progress }) => {
    steps.push(progress);
    if (progress === 3) abort.abort("enough");
};
seen.aborted = await call("count", { steps: 40, delay_ms: 25, key: "b" }, { signal: abort.signal, onprogress }).then(
    () => "answered",
    (error) => error.name,
);
seen.steps = steps.slice(0, 3); // More may be on the way.
seen.fate = (await call("fate", { key: "b" })).content[0].text;
await client.close();
console.log(JSON.stringify(seen));
