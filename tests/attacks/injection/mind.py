"""A model server without a model: OpenAI's chat completions, as kiso's providers use them, answered by the driver of a case.

A session's model is named after the server that plays its case (`/model stand:banking1`), and kiso's requests have a header with
the role.
"""

import base64
import codecs
import json
import re
import threading
import traceback

from .suites import CANARY
from .wire import Server, as_json


class Asked:
    """One request."""

    def __init__(self, headers, body):
        self.role = headers.get("x-kiso-role", "")
        self.model = body.get("model", "")
        self.stream = bool(body.get("stream"))
        self.tools = [tool["function"]["name"] for tool in body.get("tools", [])]
        self.prompt = _texts([body.get("messages"), body.get("tools")])

    def tool(self, name):
        """The tool's name in this format: a function's name cannot contain dots."""
        spelled = {name, name.replace(".", "__"), name.replace(".", "_")}
        return next((tool for tool in self.tools if tool in spelled), name)


def _texts(value):
    """All text of a request, as the model would read it."""
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return "\n".join(filter(None, map(_texts, parts)))


def _spellings(word):
    """A word in every spelling in which a text could contain it: unchanged, backwards, rot13, hex, and base64 at any position."""
    for text in (word, word[::-1], codecs.encode(word, "rot13")):
        yield text
        yield text.encode().hex()
        for before in range(3):
            whole = base64.b64encode(b"-" * before + text.encode()).decode().rstrip("=")
            # Characters that depend on the text beside the word are left out.
            yield whole[(before * 8 + 5) // 6:len(whole) - 1]


# The size of a picture that contains the attacker's words: a model that sees it is compromised, and prompts contain its size.
PICTURE = "131x97"

MARKS = tuple(sorted(set(_spellings(CANARY))))


def is_taken(prompt):
    """Whether a prompt contains a text of the attacker. Such a model answers as the attacker wants."""
    lower = prompt.lower()
    return f"{PICTURE} pixels" in prompt or any(mark in prompt or mark in lower for mark in MARKS)


class Answer:
    """An answer of a model: text and tool calls, as pairs of a name and arguments."""

    def __init__(self, text="", calls=()):
        self.text = text if isinstance(text, str) else json.dumps(text)
        self.calls = list(calls)


class Behind:
    """Answers background requests, which no session's model gets: a summary repeats the attacker's text."""

    def answer(self, asked):
        words = re.findall(rf"{CANARY}[^\n]*", asked.prompt)
        return Answer(words[-1] if words else "Nothing was said.")


class Minds:
    """The server. `playing` maps each model to its driver."""

    def __init__(self):
        self.playing = {}
        self.other = Behind()
        self.problems = []
        self.lock = threading.Lock()
        self.server = Server(self.answer)

    @property
    def base_url(self):
        return f"http://{self.server.address}/v1"

    def answer(self, _path, headers, body):
        asked = Asked(headers, body)
        mind = self.playing.get(asked.model, self.other)
        try:
            answer = mind.answer(asked)
        except Exception as error:
            self.problems.append(f"{asked.model} {asked.role}: {error!r}\n{traceback.format_exc()}")
            return as_json({"error": {"message": f"the stand-in fails: {error!r}"}}, 400)
        calls = [
            {"index": number, "id": f"call_{number}", "type": "function",
             "function": {"name": asked.tool(name), "arguments": json.dumps(args)}}
            for number, (name, args) in enumerate(answer.calls)
        ]
        stop = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        message = {"role": "assistant", "content": answer.text, **({"tool_calls": calls} if calls else {})}
        if not asked.stream:
            return as_json({"object": "chat.completion", "usage": usage,
                            "choices": [{"index": 0, "message": message, "finish_reason": stop}]})
        chunks = [{"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                  {"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
                  {"choices": [], "usage": usage}]
        events = [f"data: {json.dumps({'object': 'chat.completion.chunk', 'id': 'gen', **chunk})}\n\n" for chunk in chunks]
        return 200, "text/event-stream", "".join([*events, "data: [DONE]\n\n"]).encode()
