// A client on the TypeScript SDK, either line of it, against midwire's reference server.
//
//   node typescript.mjs '{"sdk": 1, "node_modules": "…", "transport": "http", "url": "…"}'
//   node typescript.mjs '{"sdk": 2, "mode": "auto", "node_modules": "…", "transport": "stdio", "command": ["…"]}'
//
// Prints what it has seen as one JSON object.

import { pathToFileURL } from "node:url";

const { sdk, mode, era, node_modules, transport: kind, url, command } = JSON.parse(process.argv[2]);
const load = (path) => import(pathToFileURL(`${node_modules}/@modelcontextprotocol/${path}`));
const parts =
    sdk === 2
        ? [await load("client/dist/index.mjs"), await load("client/dist/stdio.mjs")]
        : await Promise.all(
              ["client/index.js", "client/streamableHttp.js", "client/sse.js", "client/stdio.js", "types.js"].map(
                  (file) => load(`sdk/dist/esm/${file}`),
              ),
          );
const api = Object.assign({}, ...parts);

function transport() {
    if (kind === "stdio") {
        return new api.StdioClientTransport({ command: command[0], args: command.slice(1), stderr: "ignore" });
    }
    const Transport = kind === "sse" ? api.SSEClientTransport : api.StreamableHTTPClientTransport;
    return new Transport(new URL(url));
}

const options = { capabilities: { elicitation: {}, sampling: {}, roots: {} } };
if (sdk === 2) options.versionNegotiation = { mode };
const client = new api.Client({ name: `real-typescript-${sdk}`, version: "1" }, options);
// The two lines name what they handle by schema, or by method.
const named = (schema, method) => (sdk === 2 ? method : api[schema]);
client.setRequestHandler(named("ElicitRequestSchema", "elicitation/create"), async () => ({
    action: "accept",
    content: { name: "Ada" },
}));
client.setRequestHandler(named("CreateMessageRequestSchema", "sampling/createMessage"), async () => ({
    role: "assistant",
    content: { type: "text", text: "four" },
    model: "none",
    stopReason: "endTurn",
}));
client.setRequestHandler(named("ListRootsRequestSchema", "roots/list"), async () => ({
    roots: [{ uri: "file:///work" }],
}));
const logged = [];
client.setNotificationHandler(named("LoggingMessageNotificationSchema", "notifications/message"), ({ params }) => {
    logged.push(params.level);
});
const changed = [];
for (const [schema, method] of [
    ["ResourceListChangedNotificationSchema", "resources/list_changed"],
    ["ResourceUpdatedNotificationSchema", "resources/updated"],
]) {
    client.setNotificationHandler(named(schema, `notifications/${method}`), () => {
        changed.push(method);
    });
}

const pipe = transport();
await client.connect(pipe);

const call = (name, args, more) => {
    const meta = era === "modern" ? { _meta: { "io.modelcontextprotocol/logLevel": "warning" } } : {};
    const params = { name, arguments: args ?? {}, ...meta };
    return sdk === 2 ? client.callTool(params, more) : client.callTool(params, undefined, more);
};
const text = async (...args) => (await call(...args)).content[0].text;
const code = (promise) => promise.then(JSON.stringify, (error) => error.code);

const seen = {};
const isLegacy = era === "legacy";
seen.tools = (await client.listTools()).tools.length > 10;
seen.echo = await text("echo", { text: "größe 日本" });
seen.unknown = await code(call("no-such-tool"));
seen.fails = (await call("fails")).isError;
seen.sum = (await call("sum", { numbers: [1, 2] })).structuredContent;
const steps = [];
await call("slow", { steps: 8, step_ms: 10 }, { onprogress: ({ progress }) => steps.push(progress) });
// Over stdio this SDK may lose progress that arrives in one read with the answer.
seen.progress = steps.length >= 4 && steps.every((step, k) => step === k + 1);
seen.asked = await text("ask_user");
seen.sampled = await text("ask_model");
seen.rooted = await text("ask_roots");
if (isLegacy) seen.pinged = await text("ping_client");
if (isLegacy) await client.setLoggingLevel("warning");
await call("logs");
seen.logged = logged;
const abort = new AbortController();
const onprogress = ({ progress }) => {
    if (progress === 3) abort.abort("enough");
};
seen.cancelled = await call("slow", { steps: 400, step_ms: 25 }, { signal: abort.signal, onprogress }).then(
    () => false,
    () => true,
);
seen.after = await text("echo", { text: "after" });
seen.resource = (await client.readResource({ uri: "notes://today" })).contents[0].text;
seen.missing = await code(client.readResource({ uri: "notes://missing" }));
const prompt = await client.getPrompt({ name: "letter", arguments: { country: "Portugal" } });
seen.prompt = prompt.messages[0].content.text;
const ref = { type: "ref/prompt", name: "letter" };
const completed = await client.complete({ ref, argument: { name: "country", value: "j" } });
seen.completed = completed.completion.values.length > 0;
if (isLegacy) {
    await client.ping();
    await client.subscribeResource({ uri: "notes://real" });
    await call("note_write", { name: "real", text: "1" });
    await client.unsubscribeResource({ uri: "notes://real" });
    await call("note_write", { name: "real", text: "2" });
    await call("note_delete", { name: "real" });
    for (const end = Date.now() + 5000; changed.length < 3 && Date.now() < end; ) {
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    seen.changed = changed.sort();
    if (pipe.terminateSession) await pipe.terminateSession();
}
await client.close();
console.log(JSON.stringify(seen));
