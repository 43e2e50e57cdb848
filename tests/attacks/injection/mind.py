"""A model server without a model: OpenAI's chat completions, as kiso's providers ask for them, answered by whoever plays a case.

The model of a session is named after the server that plays its case (`/model stand:banking1`), and kiso says in a header which role
asks.
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
        """What a tool is called here: dots are no letters of a function's name."""
        spelled = {name, name.replace(".", "__"), name.replace(".", "_")}
        return next((tool for tool in self.tools if tool in spelled), name)


def _texts(value):
    """Every text of a request, as the model would read it."""
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return "\n".join(filter(None, map(_texts, parts)))


def _spellings(word):
    """A word in every spelling in which a text could carry it on: as it is, backwards, rot13, hex, and base64 at any position."""
    for text in (word, word[::-1], codecs.encode(word, "rot13")):
        yield text
        yield text.encode().hex()
        for before in range(3):
            whole = base64.b64encode(b"-" * before + text.encode()).decode().rstrip("=")
            # Characters that depend on what stands beside the word are left out.
            yield whole[(before * 8 + 5) // 6:len(whole) - 1]


# The size of a picture on which the attacker's words stand: a model that sees it is taken over, and prompts say how large it is.
PICTURE = "131x97"

MARKS = tuple(sorted(set(_spellings(CANARY))))


def is_taken(prompt):
    """Whether anything of the attacker's stands in a prompt. Such a model says whatever the attacker likes."""
    lower = prompt.lower()
    return f"{PICTURE} pixels" in prompt or any(mark in prompt or mark in lower for mark in MARKS)


class Answer:
    """What a model says, and the tools that it calls: pairs of a name and arguments."""

    def __init__(self, text="", calls=()):
        self.text = text if isinstance(text, str) else json.dumps(text)
        self.calls = list(calls)


class Behind:
    """Answers what is asked behind the replies, with the model of no session: a summary says what the attacker said."""

    def answer(self, asked):
        words = re.findall(rf"{CANARY}[^\n]*", asked.prompt)
        return Answer(words[-1] if words else "Nothing was said.")


class Minds:
    """The server. `playing` has who answers for a model."""

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
