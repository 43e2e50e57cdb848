// The official client for JavaScript against a daemon, whose address and token are in OPENAI_BASE_URL and OPENAI_API_KEY.
//
// Prints a line for each check, and ends with an error at the first failure.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import OpenAI from 'openai';

const client = new OpenAI({ maxRetries: 0 });
const user = (content) => ({ role: 'user', content });

async function ask(messages, options = {}) {
  const { data, response } = await client.chat.completions.create({ model: 'kiso', messages }, options).withResponse();
  return { session: response.headers.get('x-kiso-session'), text: data.choices[0].message.content, id: data.id };
}

const tried = {
  async models() {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert.equal(ids[0], 'kiso');
    await assert.rejects(client.models.retrieve('kiso/nothing'), (error) => {
      return error instanceof OpenAI.NotFoundError && error.code === 'model_not_found' && error.param === 'model';
    });
  },

  async completion() {
    const first = await ask([user('$ echo one > one; cat one')]);
    assert.match(first.text, /one/);
    const messages = [user('$ echo one > one; cat one'), { role: 'assistant', content: first.text }, user('$ cat one')];
    const second = await ask(messages);
    assert.equal(second.session, first.session);
    assert.match(second.text, /one/);
  },

  async once() {
    const idempotencyKey = 'from-javascript';
    const options = { headers: { 'Idempotency-Key': idempotencyKey } };
    const [one, other] = await Promise.all([ask([user('$ echo x')], options), ask([user('$ echo x')], options)]);
    assert.equal(one.id, other.id);
  },

  async stream() {
    const runner = client.chat.completions.stream({ model: 'kiso', messages: [user('$ echo streamed')] });
    let thoughts = '';
    for await (const chunk of runner) thoughts += chunk.choices[0]?.delta?.reasoning_content ?? '';
    assert.match(await runner.finalContent(), /streamed/);
    assert.match(thoughts, /echo streamed/);
  },

  async files() {
    const url = `data:image/png;base64,${Buffer.from('\x89PNG').toString('base64')}`;
    const done = await ask([user([{ type: 'text', text: '$ ls' }, { type: 'image_url', image_url: { url } }])]);
    assert.match(done.text, /image-[0-9a-f]{8}\.png/);
  },

  async responses() {
    const first = await client.responses.create({ model: 'kiso', input: '$ echo two > two; cat two' });
    assert.match(first.output_text, /two/);
    const stream = client.responses.stream({ model: 'kiso', input: '$ cat two', previous_response_id: first.id });
    const seen = new Set();
    for await (const event of stream) seen.add(event.type);
    const done = await stream.finalResponse();
    assert.match(done.output_text, /two/);
    assert.ok(seen.has('response.output_text.delta') && seen.has('response.completed'), [...seen].join());
    assert.equal((await client.responses.retrieve(done.id)).output_text, done.output_text);
    await client.responses.delete(done.id);
    await assert.rejects(client.responses.retrieve(done.id), OpenAI.NotFoundError);
  },

  async cancelled() {
    const begun = await client.responses.create({ model: 'kiso', input: '$ sleep 1000', background: true });
    // Before the run has started there is nothing to stop, and the client repeats the request itself.
    const patient = new OpenAI({ maxRetries: 20 });
    await patient.responses.cancel(begun.id);
    let now;
    do now = await client.responses.retrieve(begun.id);
    while (['queued', 'in_progress'].includes(now.status));
    assert.equal(now.status, 'cancelled');
    // Disconnecting from a stream does not stop the run.
    const stop = new AbortController();
    const body = { model: 'kiso', messages: [user('$ echo stays > stays; cat stays')], stream: true };
    const headers = { 'X-OpenWebUI-Chat-Id': 'left' };
    const stream = await client.chat.completions.create(body, { headers, signal: stop.signal });
    stop.abort();
    await stream.controller.abort();
    const messages = [body.messages[0], { role: 'assistant', content: 'stays' }, user('$ cat stays')];
    assert.match((await ask(messages, { headers })).text, /stays/);
  },

  async errors() {
    const wrong = new OpenAI({ apiKey: 'kiso_wrong', maxRetries: 0 });
    await assert.rejects(wrong.models.list(), OpenAI.AuthenticationError);
    const refused = client.chat.completions.create({ model: 'kiso', messages: [user('hi')], n: 2 });
    await assert.rejects(refused, (error) => error instanceof OpenAI.BadRequestError && error.param === 'n');
  },

  // The daemon is killed during the run and another one continues: the client repeats the request, and nothing is done twice.
  async again() {
    const asked = { model: 'kiso', input: '$ sleep 2; echo y >> again; wc -l again', background: true };
    const options = { headers: { 'Idempotency-Key': 'over-a-restart' } };
    const begun = await client.responses.create(asked, options);
    console.log('restart');
    const lines = createInterface({ input: process.stdin });
    const baseURL = await new Promise((resolve) => lines.once('line', resolve));
    lines.close();
    const other = new OpenAI({ baseURL, maxRetries: 5 });
    assert.equal((await other.responses.create(asked, options)).id, begun.id);
    let now;
    do now = await other.responses.retrieve(begun.id);
    while (['queued', 'in_progress'].includes(now.status));
    assert.match(now.output_text, /1 again/);
  },
};

for (const [name, work] of Object.entries(tried)) {
  await work();
  console.log('ok', name);
}
