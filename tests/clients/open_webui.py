"""Open WebUI with the requests that its page in the browser sends."""

import base64
import json
import re
import urllib.request
import uuid
from importlib.metadata import PathDistribution

from programs import GUARD_SECONDS, Daemon, Program, ask, blocks, do, free_port, pip, python, section, until

VERSION = "0.12.4"

# Packages that it needs only to run models on this machine. The first two would install PyTorch.
NOT_FOR_CHATS = {"accelerate", "sentence-transformers", "transformers", "einops", "faster-whisper", "rapidocr",
                 "opencv-python-headless", "sentencepiece", "soundfile"}

SETTINGS = {"OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1", "ENABLE_VERSION_UPDATE_CHECK": "false", "ANONYMIZED_TELEMETRY": "false",
            "SCARF_NO_ANALYTICS": "true", "RAG_EMBEDDING_ENGINE": "openai", "ENABLE_OLLAMA_API": "false", "WEBUI_SECRET_KEY": "x"}

PICTURE = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n").decode()


def install(place):
    do(python("3.12", "3.11"), "-m", "venv", place)
    pip(place, "--no-deps", f"open-webui=={VERSION}")
    needs = PathDistribution(next(place.glob("lib/*/site-packages/open_webui-*.dist-info"))).requires
    pip(place, *(need for need in needs if ";" not in need and re.split(r"[\[=]", need)[0] not in NOT_FOR_CHATS))


class Browser:
    """A person's page: sends a message with new ids for the question and the answer, and waits for the answer."""

    def __init__(self, url, program):
        self.url, self.program = url, program
        person = {"name": "Ada", "email": "ada@example.com", "password": "a-long-password"}
        self.token = ask("POST", f"{url}/api/v1/auths/signup", person)["token"]

    def ask(self, method, path, body=None):
        return ask(method, self.url + path, body, self.token)

    def chat(self, chat):
        return self.ask("GET", f"/api/v1/chats/{chat}")

    def send(self, text, chat=None, after=None, question=None, model="kiso", files=(), fails=False):
        """Returns the chat, the id of the question, and the answer with its id. With `question`, an earlier question is answered
        again."""
        identity, answer = question or str(uuid.uuid4()), str(uuid.uuid4())
        said = {"id": identity, "parentId": after, "childrenIds": [answer], "role": "user", "content": text, "models": [model],
                "timestamp": 1, "files": list(files)}
        tasks = {"follow_up_generation": True}
        if after is None:
            tasks |= {"title_generation": True, "tags_generation": True}
        sent = self.ask("POST", "/api/chat/completions", {
            "stream": True, "model": model, "params": {}, "features": {}, "variables": {}, "session_id": "page", "chat_id": chat,
            "id": answer, "message_ids": [{"model_id": model, "message_id": answer, "modelIdx": 0}], "parent_id": after,
            "user_message": said, "background_tasks": tasks})

        def answered():
            message = self.chat(sent["chat_id"])["chat"]["history"]["messages"].get(answer, {})
            return message if message.get("done") else None

        message = self.program.until("an answer", answered)
        assert bool(message.get("error")) == fails, message
        return sent["chat_id"], identity, message


def text_of(message):
    """The displayed text of an answer, without reasoning."""
    return re.sub(r"<details.*?</details>", "", message["content"], flags=re.DOTALL).strip()


def use(place, kiso, scratch):
    """Chats that are continued, edited and answered again, with their titles; pictures; a stream; and refused requests."""
    daemon = Daemon(kiso, scratch, '[pills.shout]\ntemplate = "$ echo {input} | tr a-z A-Z"\n')
    page = section("clients.md", "Open WebUI")
    named = dict(line.split("=") for line in blocks(page, "text")[0].split())
    base = daemon.here(re.search(r"`(http://[^`]+/v1)`", page)[1])
    port = free_port()
    program = Program([place / "bin/open-webui", "serve", "--host", "127.0.0.1", "--port", str(port)],
                      {**SETTINGS, **named, "DATA_DIR": scratch}, scratch)
    try:
        url = f"http://127.0.0.1:{port}"
        program.until("Open WebUI", lambda: ask("GET", f"{url}/health"))
        done = talk(Browser(url, program), base, daemon)
    finally:
        program.end()
    daemon.end()
    return done


def talk(browser, base, daemon):
    browser.ask("POST", "/openai/config/update", {
        "ENABLE_OPENAI_API": True, "OPENAI_API_BASE_URLS": [base], "OPENAI_API_KEYS": [daemon.token], "OPENAI_API_CONFIGS": {}})
    models = {model["id"] for model in browser.ask("GET", "/api/models")["data"]}
    assert {"kiso", "kiso/shout"} <= models, models

    chat, first, answer = browser.send("$ echo one > a.txt; cat a.txt")
    assert "one" in text_of(answer), answer
    assert "echo one" in json.dumps(answer.get("output") or answer["content"]), f"its thoughts are shown: {answer}"
    (session,) = daemon.sessions()
    title = until("a title", lambda: (now := browser.chat(chat)["title"]) != "New Chat" and now)
    assert "echo one" in title, title

    # Each message contains the history, which the session already has: nothing in it is done again or quoted.
    _, second, more = browser.send("$ cat a.txt; ls", chat, answer["id"], files=[{"type": "image", "url": PICTURE}])
    assert "one" in text_of(more) and ".png" in text_of(more), more
    asked = [text for role, text in daemon.messages(session) if role == "user"]
    assert len(asked) == 2 and asked[0] == "$ echo one > a.txt; cat a.txt" and asked[1].startswith("$ cat a.txt; ls"), asked
    # Another answer to the same question, and the question with another text.
    _, _, again = browser.send("$ cat a.txt; ls", chat, answer["id"], question=second)
    assert "one" in text_of(again) and again["id"] != more["id"], again
    _, _, edited = browser.send("$ wc -l a.txt", chat, answer["id"])
    assert "1 a.txt" in text_of(edited), edited
    assert daemon.sessions() == {session}, daemon.sessions()

    other, _, shouted = browser.send("hello", model="kiso/shout")
    assert "HELLO" in text_of(shouted) and other != chat, shouted
    until("its title", lambda: browser.chat(other)["title"] != "New Chat")
    assert len(daemon.sessions()) == 2, "a chat is a session, and titles and tags are none"

    request = urllib.request.Request(
        f"{browser.url}/api/chat/completions", json.dumps({"model": "kiso", "stream": True, "messages": [
            {"role": "user", "content": "$ echo streamed"}]}).encode(),
        {"Authorization": f"Bearer {browser.token}", "Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=GUARD_SECONDS) as stream:
        events = [line[6:].strip() for line in stream if line.startswith(b"data: ")]
    deltas = [choice["delta"] for event in events if event.startswith(b"{") for choice in json.loads(event).get("choices", [])]
    assert "streamed" in "".join(delta.get("content") or "" for delta in deltas), events
    assert any(delta.get("reasoning_content") for delta in deltas), events

    # The chat shows that a token was revoked.
    daemon.run("token", "revoke", "program")
    daemon.token = daemon.run("token", "add", "another").strip()
    _, _, refused = browser.send("$ echo no", other, shouted["id"], fails=True)
    assert "token" in json.dumps(refused["error"]), refused
    return f"chats with title {title!r}, a picture, another answer, an edited question, a stream, a refusal"
