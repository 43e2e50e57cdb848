"""n8n with its command line."""

import json
import os
import platform
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from programs import GUARD_SECONDS, QUIET, Daemon, blocks, do, free_port, section, until

VERSION, NODE = "2.41.1", "24.9.0"

SETTINGS = {"N8N_DIAGNOSTICS_ENABLED": "false", "N8N_VERSION_NOTIFICATIONS_ENABLED": "false", "N8N_TEMPLATES_ENABLED": "false",
            "N8N_PERSONALIZATION_ENABLED": "false"}


def install(place):
    """Installs n8n with a separate Node.js, and with SQLite, the only native module that is needed here."""
    node = f"node-linux-{ {'x86_64': 'x64', 'aarch64': 'arm64'}.get(platform.machine(), platform.machine()) }"
    (place / "package.json").write_text('{"private": true}')
    do("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", f"n8n@{VERSION}", f"{node}@{NODE}", cwd=place)
    (place / "node").symlink_to(f"node_modules/{node}")
    program, gyp = place / "node/bin/node", place / "node_modules/node-gyp/bin/node-gyp.js"
    do(program, gyp, "rebuild", f"--nodedir={(place / 'node').resolve()}", cwd=place / "node_modules/sqlite3")


class Workflows:
    """n8n's command line."""

    def __init__(self, place, scratch, credentials):
        self.command = [place / "node/bin/node", place / "node_modules/n8n/bin/n8n"]
        self.dir = Path(tempfile.mkdtemp(dir=scratch))
        self.env = {**os.environ, **QUIET, **SETTINGS, "HOME": str(self.dir), "N8N_USER_FOLDER": str(self.dir),
                    "N8N_RUNNERS_BROKER_PORT": str(free_port())}
        self.count = 0
        self.load("credentials", [{"id": kind, "name": kind, "type": kind.split("-")[0], "data": data}
                                  for kind, data in credentials.items()])

    def n8n(self, *words):
        ran = subprocess.run([*map(str, self.command), *words], env=self.env, cwd=self.dir, capture_output=True, text=True,
                             timeout=GUARD_SECONDS)
        assert ran.returncode == 0, f"n8n {words}:\n{ran.stdout[-4000:]}{ran.stderr[-2000:]}"
        return ran.stdout

    def load(self, what, content):
        file = self.dir / f"{what}.json"
        file.write_text(json.dumps(content))
        self.n8n(f"import:{what}", f"--input={file}")

    def execute(self, nodes, links):
        """Runs nodes (name: type, version, parameters and credential) with links (from, to, kind). Returns the output of each."""
        self.count += 1
        connections = {}
        for start, end, kind in links:
            connections.setdefault(start, {}).setdefault(kind, [[]])[0].append({"node": end, "type": kind, "index": 0})
        known = {"Start": ("n8n-nodes-base.manualTrigger", 1, {}, None), **nodes}
        made = [{"id": name, "name": name, "type": kind, "typeVersion": version, "position": [0, 0], "parameters": parameters,
                 "credentials": {credential.split("-")[0]: {"id": credential, "name": credential}} if credential else {}}
                for name, (kind, version, parameters, credential) in known.items()]
        identity = f"workflow{self.count}"
        self.load("workflow", [{"id": identity, "name": identity, "active": False, "nodes": made, "connections": connections,
                                "settings": {"executionOrder": "v1"}}])
        said = self.n8n("execute", f"--id={identity}", "--rawOutput")
        ran = json.loads(said[said.index("\n{") if not said.startswith("{") else 0:])["data"]["resultData"]["runData"]
        return {name: [item["json"] for item in runs[0]["data"]["main"][0]] for name, runs in ran.items() if "main" in runs[0]["data"]}


class Model:
    """A model with OpenAI's interface that calls the first offered tool of this name, and then repeats its result."""

    def __init__(self, tool, arguments):
        model, self.asked = self, []

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.asked.append(body)
                last, finish = body["messages"][-1], "stop"
                if last["role"] == "tool":
                    message = {"role": "assistant", "content": f"It said: {last['content']}"}
                else:
                    name = next(one["function"]["name"] for one in body["tools"] if one["function"]["name"].endswith(tool))
                    function = {"name": name, "arguments": json.dumps(arguments)}
                    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
                    finish = "tool_calls"
                answer = json.dumps({"id": "a", "object": "chat.completion", "created": 1, "model": body["model"],
                                     "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                                     "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


def use(place, kiso, scratch):
    """A chain and two agents with kiso as their model, an agent with kiso's tools, and a request to a hook."""
    hook = blocks(section("hooks.md", "A first hook"), "sh")[0].split("<<'END'\n")[1].split("END")[0]
    daemon = Daemon(kiso, scratch, hook)
    model = Model("exec", {"command": "echo $((3 * 4))"})
    base, endpoint = map(str.strip, map(daemon.here, blocks(section("clients.md", "n8n"), "text")))
    secret = daemon.run("connect", "hook", "secret", "door").strip()
    workflows = Workflows(place, scratch, {
        "openAiApi-kiso": {"apiKey": daemon.token, "url": base}, "openAiApi-other": {"apiKey": "none", "url": model.url},
        "httpBearerAuth-kiso": {"token": daemon.token}, "httpBearerAuth-hook": {"token": secret}})
    langchain, done = "@n8n/n8n-nodes-langchain", []

    def chat_model(name, credential, responses):
        chosen = {"__rl": True, "mode": "id", "value": name}
        return f"{langchain}.lmChatOpenAi", 1.3, {"model": chosen, "responsesApiEnabled": responses, "options": {}}, credential

    def agent(text):
        return f"{langchain}.agent", 3.1, {"promptType": "define", "text": text, "options": {}}, None

    for responses in (True, False):
        before = daemon.sessions()
        gave = workflows.execute(
            {"Chain": (f"{langchain}.chainLlm", 1.9, {"promptType": "define", "text": "$ echo $((3 * 4))", "batching": {}}, None),
             "Model": chat_model("kiso", "openAiApi-kiso", responses)},
            [("Start", "Chain", "main"), ("Model", "Chain", "ai_languageModel")])
        assert "12" in gave["Chain"][0]["text"], gave
        assert len(daemon.sessions() - before) == 1, daemon.sessions()
        # The history in an agent's memory continues the session in which it started.
        before = daemon.sessions()
        memory = {"sessionIdType": "customKey", "sessionKey": f"one-{responses}", "contextWindowLength": 5}
        gave = workflows.execute(
            {"First": agent("$ echo kept > kept; cat kept"), "Second": agent("$ cat kept"),
             "Model": chat_model("kiso", "openAiApi-kiso", responses), "Memory": (f"{langchain}.memoryBufferWindow", 1.3, memory, None)},
            [("Start", "First", "main"), ("First", "Second", "main"), *(("Model", name, "ai_languageModel") for name in ("First", "Second")),
             *(("Memory", name, "ai_memory") for name in ("First", "Second"))])
        assert "kept" in gave["Second"][0]["output"] and "No such" not in gave["Second"][0]["output"], gave
        (session,) = daemon.sessions() - before
        asked = [text for role, text in daemon.messages(session) if role == "user"]
        assert len(asked) == 2 and asked[1] == "$ cat kept", f"what the session knows is not quoted: {asked}"
        done.append("Responses API" if responses else "chat completions")

    gave = workflows.execute(
        {"Agent": agent("What is three times four?"), "Model": chat_model("other", "openAiApi-other", False),
         "Tools": (f"{langchain}.mcpClientTool", 1.4, {"endpointUrl": endpoint, "serverTransport": "httpStreamable",
                                                      "authentication": "bearerAuth", "include": "all", "options": {}}, "httpBearerAuth-kiso")},
        [("Start", "Agent", "main"), ("Model", "Agent", "ai_languageModel"), ("Tools", "Agent", "ai_tool")])
    assert "exit_code" in gave["Agent"][0]["output"] and "12" in gave["Agent"][0]["output"], gave
    offered = len(model.asked[0]["tools"])

    gave = workflows.execute(
        {"Hook": ("n8n-nodes-base.httpRequest", 4.2, {
            "method": "POST", "url": f"{daemon.url}/hooks/door", "authentication": "genericCredentialType", "genericAuthType": "httpBearerAuth",
            "sendBody": True, "specifyBody": "json", "jsonBody": '{"name": "front-door", "state": "open"}', "options": {}},
            "httpBearerAuth-hook")},
        [("Start", "Hook", "main")])
    assert gave["Hook"][0]["status"] == "queued" and gave["Hook"][0]["session"] == "hook.door", gave
    until("the answer", lambda: [role for role, _ in daemon.messages("hook.door")] == ["user", "assistant"])
    daemon.end()
    return f"chains and agents by {' and '.join(done)}, {offered} tools for an agent, a hook"