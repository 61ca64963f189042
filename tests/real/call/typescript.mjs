// A server on the TypeScript SDK 2 that speaks both eras, for the reference client.
//
//   node typescript.mjs NODE_MODULES stdio
//   node typescript.mjs NODE_MODULES http PORT

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, transport, port] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(createRequire(`${modules}/`).resolve(name)));
const { McpServer, createMcpHandler } = await load("@modelcontextprotocol/server");
const { z } = await load("zod");

// What became of each call that gave a key.
const fates = new Map();
const text = (said) => ({ content: [{ type: "text", text: said }] });

function make() {
    const server = new McpServer({ name: "real-typescript", version: "1" }, { capabilities: { tools: {} } });
    server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, async ({ text: said }) => text(said));
    server.registerTool(
        "count",
        { inputSchema: z.object({ steps: z.number(), delay_ms: z.number(), key: z.string() }) },
        async ({ steps, delay_ms, key }, ctx) => {
            fates.set(key, "running");
            const { signal, _meta, notify } = ctx.mcpReq;
            for (let step = 1; step <= steps; step += 1) {
                await new Promise((resolve) => setTimeout(resolve, delay_ms));
                if (signal.aborted) {
                    fates.set(key, "cancelled");
                    return text("stopped");
                }
                const progressToken = _meta?.progressToken;
                if (progressToken !== undefined) {
                    const params = { progressToken, progress: step, total: steps };
                    await notify({ method: "notifications/progress", params });
                }
            }
            fates.set(key, "completed");
            return text(`counted to ${steps}`);
        },
    );
    server.registerTool("fate", { inputSchema: z.object({ key: z.string() }) }, async ({ key }) => {
        for (let tries = 0; tries < 100 && fates.get(key) === "running"; tries += 1) {
            await new Promise((resolve) => setTimeout(resolve, 10));
        }
        return text(fates.get(key) ?? "unknown");
    });
    return server;
}

if (transport === "stdio") {
    const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
    serveStdio(make);
} else {
    const { toNodeHandler, localhostOriginValidation } = await load("@modelcontextprotocol/node");
    const handle = toNodeHandler(createMcpHandler(make));
    const isOwn = localhostOriginValidation();
    createServer((request, response) => {
        if (isOwn(request, response)) {
            void handle(request, response);
        }
    }).listen(Number(port), "127.0.0.1");
}
