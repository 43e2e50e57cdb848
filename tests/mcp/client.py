"""The official client for Python against kiso, in the selected era. Prints a line "ok WHAT" for each successful check.

    client.py stdio|http legacy|2026-07-28

KISO and KISO_HOME are for stdio; MCP_URL and MCP_TOKEN for http.
"""

import asyncio
import os
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

WAY, MODE = sys.argv[1:]


def server():
    if WAY == "stdio":
        return StdioServerParameters(command=os.environ["KISO"], args=["mcp"], env={"KISO_HOME": os.environ["KISO_HOME"]})
    headers = {"Authorization": "Bearer " + os.environ["MCP_TOKEN"]}
    return streamable_http_client(os.environ["MCP_URL"], http_client=httpx2.AsyncClient(headers=headers, timeout=120))


def ok(what, so):
    if not so:
        raise SystemExit(f"not {what}")
    print("ok", what)


async def restarted(client):
    """The daemon is killed and another one started: requests of the newer era have no session that could be lost."""
    print("restart", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    try:
        there = await client.call_tool("exec", {"command": "cat a.txt"})
        ok("a restart", MODE != "legacy" and there.structured_content["stdout"] == "one\n")
    except MCPError as error:
        ok("a restart", MODE == "legacy" and "`initialize`" in error.message)


async def main():
    async with Client(server(), mode=MODE, read_timeout_seconds=120) as client:
        version = client.protocol_version
        ok("the version", version == ("2026-07-28" if MODE != "legacy" else "2025-11-25"))
        tools = (await client.list_tools()).tools
        ok("tools", {"run", "exec", "echo", "memory_search"} <= {tool.name for tool in tools})

        echoed = await client.call_tool("echo", {"text": "hello"})
        ok("a call", echoed.content[0].text == "hello" and not echoed.is_error)
        made = await client.call_tool("exec", {"command": "echo one > a.txt; cat a.txt"})
        ok("structured content", made.structured_content == {"exit_code": 0, "stdout": "one\n", "stderr": ""})
        wrong = await client.call_tool("echo", {})
        ok("an error of a tool", wrong.is_error and "text" in wrong.content[0].text)
        try:
            await client.call_tool("none", {})
            ok("an error of the protocol", False)
        except MCPError as error:
            ok("an error of the protocol", error.code == -32602)

        many = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(8)))
        ok("calls at once", [one.content[0].text for one in many] == [str(n) for n in range(8)])

        resources = (await client.list_resources()).resources
        uri = next(str(resource.uri) for resource in resources if resource.name == "a.txt")
        read = await client.read_resource(uri)
        ok("a resource", read.contents[0].text == "one\n")
        ok("templates", len((await client.list_resource_templates()).resource_templates) == 2)
        ok("prompts", (await client.list_prompts()).prompts[0].name == "shout")
        prompt = await client.get_prompt("shout", {"input": "hi"})
        ok("a prompt", prompt.messages[0].content.text == "$ echo hi | tr a-z A-Z")

        heard = []

        async def progress(done, total, message):
            heard.append((done, message))

        answer = await client.call_tool("run", {"message": "$ cat a.txt"}, progress_callback=progress)
        ok("a run", "one" in answer.content[0].text and answer.structured_content["status"] == "done")
        ok("its progress", len(heard) > 0 and heard == sorted(heard, key=lambda one: one[0]))

        waiting = asyncio.create_task(client.call_tool("run", {"message": "$ echo begun > begun; sleep 1000"}))
        while True:
            names = {resource.name for resource in (await client.list_resources(cache_mode="bypass")).resources}
            if "begun" in names:
                break
            await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        # Waits until the run has released the session.
        while True:
            free = await client.call_tool("exec", {"command": "echo free"})
            if not free.is_error:
                break
        ok("a cancelled run", free.structured_content["stdout"] == "free\n")

        if WAY == "http":
            await restarted(client)

    # A client that connects again finds its files.
    async with Client(server(), mode=MODE, read_timeout_seconds=120) as client:
        there = await client.call_tool("exec", {"command": "cat a.txt"})
        ok("another connection", there.structured_content["stdout"] == "one\n")


asyncio.run(main())
