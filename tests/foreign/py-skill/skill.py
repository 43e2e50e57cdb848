"""World kiso:skill/sandbox in Python. `mode` says what to do; the modes use each kind of import once."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import kv, log, progress, publish, secrets
from wit_world.imports.kiso_skill_types import Call, Failure, File, Reply


class Skill(exports.Skill):
    def run(self, call: Call) -> Reply:
        args = json.loads(call.args)
        mode, text = args.get("mode", "echo"), args.get("text", "")
        log.write("info", f"mode {mode}")
        progress.report(0.5, "half way")
        match mode:
            case "echo":
                return reply(text, {"text": text, "session": call.session, "locale": call.locale})
            case "count":
                count = int((kv.get("count") or b"0").decode()) + 1
                kv.set("count", str(count).encode())
                return reply(f"called {count} times", {"count": count})
            case "write":
                with open("/work/py.txt", "w", encoding="utf-8") as file:
                    file.write(text)
                link = publish.file("py.txt", "From Python")
                return reply(link, {"link": link}, [File("py.txt", "text/plain", "From Python")])
            case "secret":
                return reply(secrets.get("other"), {})
            case "failure":
                raise Err(Failure("not-today", "the moon is in the wrong house", retryable=True))
            case "throw":
                raise ValueError("an exception that is no failure")
            case "loop":
                while True:
                    pass
            case "allocate":
                kept = []
                while True:
                    kept.append(bytearray(b"x") * (1 << 20))
            case "recurse":
                def down(n):
                    return down(n + 1) + n
                return reply(str(down(0)), {})
            case _:
                raise Err(Failure("bad-args", f"no mode {mode}", retryable=False))


def reply(text: str, data: object, files: list[File] | None = None) -> Reply:
    return Reply(text=text, data=json.dumps(data), files=files or [])
