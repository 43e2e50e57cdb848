"""The official client for Python against a daemon, whose address and token are in OPENAI_BASE_URL and OPENAI_API_KEY. OTHER_KEY
is another token.

Prints a line for each check, and ends with an error at the first failure."""

import base64
import json
import os
import sys

import openai
from openai import OpenAI

client = OpenAI(max_retries=0)


def chat(*said, model="kiso", client=client, **more):
    """A completion of this conversation. Returns its session, and the response."""
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    raw = client.chat.completions.with_raw_response.create(model=model, messages=messages, **more)
    return raw.headers.get("x-kiso-session"), raw.parse()


def text_of(completion):
    return completion.choices[0].message.content


def refused(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"nothing was refused: {kind}")


def models():
    ids = [model.id for model in client.models.list()]
    assert ids[0] == "kiso" and "kiso/shout" in ids and "kiso/main" in ids, ids
    assert client.models.retrieve("kiso").owned_by == "kiso"
    assert client.models.retrieve("kiso/main").id == "kiso/main"
    error = refused(openai.NotFoundError, lambda: client.models.retrieve("gpt-4"))
    assert error.code == "model_not_found" and error.param == "model", error


def completion():
    session, done = chat("$ echo one two")
    assert session.startswith("chat-"), session
    assert "one two" in text_of(done) and done.choices[0].finish_reason == "stop", done
    assert done.object == "chat.completion" and done.id.startswith("chatcmpl-") and done.model == "kiso", done
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens, done
    assert "echo one two" in done.choices[0].message.reasoning_content, done


def conversations():
    one, _ = chat("$ echo alike")
    another, _ = chat("$ echo alike")
    assert one != another, "two who begin alike are not one"
    first, hello = chat("$ echo hi > said; cat said")
    other, _ = chat("$ echo hi > said; cat said", "something else", "$ echo x")
    assert other != first, "what was said is not what was said"
    same, more = chat("$ echo hi > said; cat said", text_of(hello), "$ cat said")
    assert same == first and "hi" in text_of(more), (first, same, more)
    later, _ = chat("$ echo hi > said; cat said", text_of(hello), "$ echo x")
    assert later != first, "the session has gone on since"
    stranger = OpenAI(api_key=os.environ["OTHER_KEY"], max_retries=0)
    theirs, _ = chat("$ echo hi > said; cat said", text_of(hello), "$ echo x", client=stranger)
    assert theirs != first, "a conversation is one token's"
    person, _ = chat("$ echo a", user="ada")
    _, whole = chat("$ echo a", user="ada")
    nobody, _ = chat("$ echo a", text_of(whole), "$ echo b", user="bob")
    assert nobody != person, "and one person's"


def chats():
    def ask(*said, token=client):
        return chat(*said, client=token, extra_headers={"X-OpenWebUI-Chat-Id": "7f0e"})

    first, done = ask("$ echo kept > kept; cat kept")
    second, _ = ask("$ echo kept > kept; cat kept", text_of(done), "$ cat kept")
    assert first == second
    # An earlier question was changed: the same chat, whose files are still there.
    third, changed = ask("$ cat kept")
    assert third == first and "kept" in text_of(changed), changed
    stranger = OpenAI(api_key=os.environ["OTHER_KEY"], max_retries=0)
    theirs, _ = ask("$ echo x", token=stranger)
    assert theirs != first
    by_metadata, _ = chat("$ echo x", metadata={"chat_id": "7f0e"})
    assert by_metadata == first


def named_models():
    session, done = chat("$ echo here > here; cat here", model="kiso/main")
    assert session == "main" and "here" in text_of(done)
    session, done = chat("whatever was said", "before", "$ cat here", model="kiso/main")
    assert session == "main" and "here" in text_of(done)
    _, shouted = chat("hello", model="kiso/shout")
    assert "HELLO" in text_of(shouted), shouted


def stream():
    chunks = list(client.chat.completions.create(
        model="kiso", messages=[{"role": "user", "content": "$ echo streamed"}], stream=True,
        stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    text = "".join(delta.content or "" for delta in deltas)
    thoughts = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert "streamed" in text and "echo streamed" in thoughts, (text, thoughts)
    assert deltas[0].role == "assistant" and chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage.total_tokens >= 0
    assert len({chunk.id for chunk in chunks}) == 1


def files():
    data = lambda kind, content: f"data:{kind};base64,{base64.b64encode(content).decode()}"
    content = [
        {"type": "text", "text": "$ ls; cat note.txt"},
        {"type": "image_url", "image_url": {"url": data("image/png", b"\x89PNG\r\n")}},
        {"type": "file", "file": {"filename": "../note.txt", "file_data": data("text/plain", b"noted\n")}},
    ]
    done = client.chat.completions.create(model="kiso", messages=[{"role": "user", "content": content}])
    assert "noted" in text_of(done) and ".png" in text_of(done), done
    content[1]["image_url"]["url"] = "https://example.com/a.png"
    error = refused(openai.BadRequestError, lambda: client.chat.completions.create(
        model="kiso", messages=[{"role": "user", "content": content}]))
    assert error.param == "messages[0].content[1]" and "data URL" in error.message, error


def once():
    def ask(text):
        return chat(text, extra_headers={"Idempotency-Key": "only-once"})

    first, done = ask("$ echo x >> times; wc -l times")
    second, again = ask("$ echo x >> times; wc -l times")
    assert first == second and done.id == again.id and text_of(done) == text_of(again), (done, again)
    _, count = chat("$ echo x >> times; wc -l times", text_of(done), "$ wc -l times")
    assert "1 times" in text_of(count), count
    assert refused(openai.ConflictError, lambda: ask("$ echo other")).code == "key_reused"


def chores():
    history = "<chat_history>\nUSER: Plot the rain\nASSISTANT: Done\n</chat_history>"
    for asked, member in [("Generate a title: { \"title\": \"x\" }", "title"), ("Generate tags: { \"tags\": [] }", "tags")]:
        session, done = chat(f"### Task:\n{asked}\n### Chat History:\n{history}")
        assert session is None and member in json.loads(text_of(done)), done


def responses():
    first = client.responses.create(model="kiso", input="$ echo one > one; cat one", metadata={"of": "tests"})
    assert first.status == "completed" and "one" in first.output_text and first.id.startswith("resp_"), first
    assert [item.type for item in first.output] == ["reasoning", "message"], first
    second = client.responses.create(model="kiso", input="$ cat one", previous_response_id=first.id)
    assert "one" in second.output_text and second.previous_response_id == first.id, second
    # A response after an earlier one, whose session has continued: a separate conversation, which does not have that file.
    branch = client.responses.create(model="kiso", input="$ test -f one || echo nothing", previous_response_id=first.id)
    assert "nothing" in branch.output_text, branch
    found = client.responses.retrieve(first.id)
    assert found.output_text == first.output_text and found.metadata == {"of": "tests"}, found
    assert found.output[0].type == "reasoning"
    client.responses.delete(first.id)
    for call in (lambda: client.responses.retrieve(first.id), lambda: client.responses.delete(first.id),
                 lambda: client.responses.create(model="kiso", input="hi", previous_response_id=first.id)):
        assert refused(openai.NotFoundError, call).code == "not_found"
    kept = client.responses.create(model="kiso", input="$ echo x", store=False)
    refused(openai.NotFoundError, lambda: client.responses.retrieve(kept.id))
    items = [{"role": "user", "content": [{"type": "input_text", "text": "$ echo listed"}]}]
    assert "listed" in client.responses.create(model="kiso", input=items, conversation="c1").output_text


def response_events():
    with client.responses.stream(model="kiso", input="$ echo flowing") as events:
        seen = [event.type for event in events]
        done = events.get_final_response()
    assert done.status == "completed" and "flowing" in done.output_text, done
    for kind in ("response.created", "response.in_progress", "response.output_item.added",
                 "response.reasoning_summary_text.delta", "response.output_text.delta", "response.completed"):
        assert kind in seen, (kind, seen)
    assert client.responses.retrieve(done.id).output_text == done.output_text


def in_the_background():
    begun = client.responses.create(model="kiso", input="$ echo later", background=True)
    assert begun.status in ("queued", "in_progress", "completed"), begun
    for _ in range(100_000):
        now = client.responses.retrieve(begun.id)
        if now.status not in ("queued", "in_progress"):
            break
    assert now.status == "completed" and "later" in now.output_text, now


def cancelled():
    begun = client.responses.create(model="kiso", input="$ echo begun; sleep 1000", background=True)

    def stop():
        # Before the run has started there is nothing to stop, and the client is told to repeat the request.
        while True:
            try:
                return client.responses.cancel(begun.id)
            except openai.ConflictError as error:
                assert error.code == "not_begun", error

    assert stop().status in ("in_progress", "cancelled")
    while (now := client.responses.retrieve(begun.id)).status in ("queued", "in_progress"):
        pass
    assert now.status == "cancelled", now
    # A finished response does not change, and another token's or an unknown one is not found.
    assert client.responses.cancel(begun.id).status == "cancelled"
    refused(openai.NotFoundError, lambda: client.responses.cancel("resp_none"))
    stranger = OpenAI(api_key=os.environ["OTHER_KEY"], max_retries=0)
    refused(openai.NotFoundError, lambda: stranger.responses.cancel(begun.id))
    # The session is free again, also for a client that stops a stream by a command in the same chat.
    chat_id = {"X-OpenWebUI-Chat-Id": "stopped"}
    stream = client.chat.completions.create(
        model="kiso", messages=[{"role": "user", "content": "$ echo on; sleep 1000"}], stream=True, extra_headers=chat_id)
    for chunk in stream:
        if "sleep 1000" in (getattr(chunk.choices[0].delta, "reasoning_content", None) or ""):
            break
    _, said = chat("/cancel", extra_headers=chat_id)
    assert "Stopping" in text_of(said), said
    assert [chunk for chunk in stream][-1].choices[0].finish_reason == "stop"


def again():
    """The daemon is killed during the run and another one continues: the client repeats the request, and nothing is done
    twice."""
    key = {"Idempotency-Key": "over-a-restart"}
    asked = {"model": "kiso", "input": "$ sleep 2; echo y >> again; wc -l again", "extra_headers": key}
    begun = client.responses.create(background=True, **asked)
    other = OpenAI(base_url=restarted(), max_retries=5)
    same = other.responses.create(background=True, **asked)
    assert same.id == begun.id, (same, begun)
    while (now := other.responses.retrieve(begun.id)).status in ("queued", "in_progress"):
        pass
    assert now.status == "completed" and "1 again" in now.output_text, now
    more = other.responses.create(model="kiso", input="$ wc -l again", previous_response_id=begun.id)
    assert "1 again" in more.output_text, more


def restarted():
    """Has the daemon killed and another one started. Returns its address."""
    print("restart", flush=True)
    return sys.stdin.readline().strip()


def errors():
    wrong = OpenAI(api_key="kiso_wrong", max_retries=0)
    assert refused(openai.AuthenticationError, lambda: wrong.models.list()).code == "unauthorized"
    one = [{"role": "user", "content": "hi"}]
    create = client.chat.completions.create
    for param, call in [
        ("n", lambda: create(model="kiso", messages=one, n=2)),
        ("messages", lambda: create(model="kiso", messages=[{"role": "system", "content": "x"}])),
        ("tool_choice", lambda: create(model="kiso", messages=one, tool_choice="required")),
        ("response_format", lambda: create(model="kiso", messages=one, response_format={"type": "json_object"})),
        ("input[0]", lambda: client.responses.create(model="kiso", input=[{"type": "item_reference", "id": "x"}])),
    ]:
        error = refused(openai.BadRequestError, call)
        assert error.param == param and error.type == "invalid_request_error", (param, error)
    assert "/status" not in text_of(chat("/status")[1])


for tried in (models, completion, conversations, chats, named_models, stream, files, once, chores, responses,
              response_events, in_the_background, cancelled, errors, again):
    tried()
    print("ok", tried.__name__, flush=True)
