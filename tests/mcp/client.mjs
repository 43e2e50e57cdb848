// The official clients for JavaScript against kiso. Prints a line "ok WHAT" for each successful check.
//
//     client.mjs stdio|http PACKAGE ERA
//
// PACKAGE is @modelcontextprotocol/sdk (the older era) or @modelcontextprotocol/client (both). KISO and KISO_HOME are for stdio,
// MCP_URL and MCP_TOKEN for http.

const [way, name, era] = process.argv.slice(2);
const sdk = name.endsWith("/sdk");
const { Client } = sdk ? await import(`${name}/client/index.js`) : await import(name);
const { StdioClientTransport } = await import(sdk ? `${name}/client/stdio.js` : `${name}/stdio`);
const { StreamableHTTPClientTransport } = sdk ? await import(`${name}/client/streamableHttp.js`) : await import(name);

function transport() {
  if (way === "stdio") {
    const { KISO: command, KISO_HOME } = process.env;
    return new StdioClientTransport({ command, args: ["mcp"], env: { KISO_HOME } });
  }
  const headers = { authorization: `Bearer ${process.env.MCP_TOKEN}` };
  return new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { requestInit: { headers } });
}

function ok(what, so) {
  if (!so) throw new Error(`not ${what}`);
  console.log("ok", what);
}

const options = sdk ? {} : { versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } } };
const connect = async () => {
  const client = new Client({ name: "javascript", version: "1" }, options);
  await client.connect(transport());
  return client;
};
const call = (client, tool, args, more = {}) => {
  const asked = { name: tool, arguments: args };
  const settings = { timeout: 120_000, ...more };
  return sdk ? client.callTool(asked, undefined, settings) : client.callTool(asked, settings);
};

const client = await connect();
const { tools } = await client.listTools();
ok("tools", ["run", "exec", "echo", "memory_search"].every((name) => tools.some((tool) => tool.name === name)));
ok("a call", (await call(client, "echo", { text: "hello" })).content[0].text === "hello");
const made = await call(client, "exec", { command: "echo one > a.txt; cat a.txt" });
ok("structured content", made.structuredContent.stdout === "one\n" && made.structuredContent.exit_code === 0);
const wrong = await call(client, "echo", {});
ok("an error of a tool", wrong.isError && wrong.content[0].text.includes("text"));
const refused = await call(client, "none", {}).then(() => null, (error) => error);
ok("an error of the protocol", refused?.code === -32602);
const many = await Promise.all([...Array(8).keys()].map((n) => call(client, "echo", { text: `${n}` })));
ok("calls at once", many.every((one, n) => one.content[0].text === `${n}`));
const { resources } = await client.listResources();
const { uri } = resources.find((resource) => resource.name === "a.txt");
ok("a resource", (await client.readResource({ uri })).contents[0].text === "one\n");
ok("prompts", (await client.listPrompts()).prompts[0].name === "shout");
const prompt = await client.getPrompt({ name: "shout", arguments: { input: "hi" } });
ok("a prompt", prompt.messages[0].content.text === "$ echo hi | tr a-z A-Z");
const heard = [];
const answer = await call(client, "run", { message: "$ cat a.txt" }, { onprogress: (progress) => heard.push(progress) });
ok("a run", answer.content[0].text.includes("one") && answer.structuredContent.status === "done");
ok("its progress", heard.length > 0);

const stop = new AbortController();
const waiting = call(client, "run", { message: "$ echo begun > begun; sleep 1000" }, { signal: stop.signal }).catch(() => null);
const names = async () => (await client.listResources(undefined, { cacheMode: "bypass" })).resources.map((resource) => resource.name);
while (!(await names()).includes("begun")) await new Promise((resolve) => setTimeout(resolve, 50));
stop.abort();
await waiting;
let free;
do free = await call(client, "exec", { command: "echo free" });
while (free.isError);
ok("a cancelled run", free.structuredContent.stdout === "free\n");
if (way === "http") {
  // The daemon is killed and another one started: requests of the newer era have no session that could be lost.
  console.log("restart");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  process.stdin.destroy();
  const there = await call(client, "exec", { command: "cat a.txt" }).catch((error) => error.message);
  ok("a restart", era === "legacy" ? there.includes("`initialize`") : there.structuredContent.stdout === "one\n");
}
await client.close();

const again = await connect();
const there = await call(again, "exec", { command: "cat a.txt" });
ok("another connection", there.structuredContent.stdout === "one\n");
await again.close();
