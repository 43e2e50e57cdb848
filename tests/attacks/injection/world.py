"""The tools of a suite, served to kiso over the Model Context Protocol: the package's own functions on its own environments."""

import copy
import threading

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionCall

from .suites import suites
from .wire import Server, as_json

VERSION = "2026-07-28"


class Play:
    """One running case: its environment, and every call that reached it."""

    def __init__(self, case):
        self.case = case
        self.environment = case.environment()
        self.before = self.environment.model_copy(deep=True)
        self.runtime = case.runtime()
        self.calls = []
        self.lock = threading.Lock()

    def call(self, name, args):
        """The text of the result, and whether it is an error."""
        with self.lock:
            # The package adds omitted arguments.
            call = FunctionCall(function=name, args=copy.deepcopy(args))
            result, error = self.runtime.run_function(self.environment, name, args)
            text = error or tool_result_to_str(result)
            self.calls.append((call, error))
        return text, bool(error)

    @property
    def made(self):
        """The calls that returned a result."""
        return [call for call, error in self.calls if error is None]


class World:
    """Servers named by suite and number, such as `banking1`. Each plays one case at a time."""

    def __init__(self, slots):
        self.names = {f"{suite}{number}": suite for suite in suites() for number in range(1, slots + 1)}
        self.playing = {}
        # Calls to a server without a case: caused by something that an earlier case left behind.
        self.strays = []
        self.lists = {suite: [_described(tool) for tool in chosen.tools] for suite, chosen in suites().items()}
        self.server = Server(self.answer)

    def url(self, name):
        return f"http://{self.server.address}/{name}"

    def answer(self, path, _headers, message):
        name, method = path.strip("/"), message.get("method")
        if method == "server/discover":
            result = {"supportedVersions": [VERSION], "capabilities": {"tools": {}}}
        elif method == "tools/list":
            result = {"tools": self.lists[self.names[name]], "ttlMs": 86_400_000, "cacheScope": "public"}
        elif method == "tools/call":
            text, failed = self.call(name, message["params"]["name"], message["params"].get("arguments") or {})
            result = {"content": [{"type": "text", "text": text}], "isError": failed}
        else:
            return as_json({"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": -32601, "message": "no such method"}}, 404)
        return as_json({"jsonrpc": "2.0", "id": message["id"], "result": {**result, "resultType": "complete"}})

    def call(self, name, tool, args):
        play = self.playing.get(name)
        if play is None:
            self.strays.append((name, tool, args))
            return "the server has nothing to do with that now", True
        return play.call(tool, args)


def _described(tool):
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters.model_json_schema()}
