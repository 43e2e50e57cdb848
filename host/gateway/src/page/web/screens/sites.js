// Sites: the rules for commands and bundled skills, and the origin of each rule.

import { html, useLoaded, useStore } from '../lib/preact.js';
import { get, isAdmin, request } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { href } from '../lib/router.js';
import { sessions, titleOf } from '../lib/sessions.js';
import { Badge, Button, Empty, Loaded, Said, ScreenHead, Time, confirm, toast } from '../lib/ui.js';

const READING = ['GET', 'HEAD', 'OPTIONS'];

/** Access of a rule -> its label and colour. */
const ACCESS = { allow: ['Allowed', 'good'], ask: ['Asks first', ''], deny: ['Never', 'bad'] };

/** Access to a site without a rule. */
const DEFAULT = {
  allow: 'Every other public site is open without a question (setting network.default).',
  ask: 'For a site without a rule, kiso asks before it opens it. Your message counts as permission for the addresses that it names.',
  deny: 'Every other site is closed, unless your message names its address (setting network.default).',
};

export default function Screen() {
  const loaded = useLoaded((signal) => (isAdmin() ? get('/network', null, signal) : null), []);
  const head = html`<${ScreenHead} title="Sites" about="Which sites commands and bundled skills can open. An installed skill has its own permissions." />`;
  if (!isAdmin()) {
    return html`<div class="screen">${head}<${Empty} icon="lock" title="Only for administrators">The rules are about all chats.<//></div>`;
  }
  return html`<div class="screen">${head}
    <${Loaded} of=${loaded}>${({ configured, remembered, default: usual }) => html`
      <p>${DEFAULT[usual]}</p>
      ${configured.length + remembered.length === 0 && html`<${Empty} icon="link" title="No rules yet">Answer “Always” or “Never here” when kiso asks about a site, and its rule appears here.<//>`}
      ${remembered.length > 0 && html`<ul class="card lists-rows" aria-label="Rules">${remembered.map((rule) => html`<${Rule} key=${rule.id} rule=${rule} all=${remembered} again=${loaded.again} />`)}</ul>`}
      ${configured.length > 0 && html`<h2>From the configuration file</h2>
        <p class="muted">They come first, in this order. Change them in <code>config.toml</code>.</p>
        <ul class="card lists-rows" aria-label="Rules of the configuration file">${configured.map((rule, at) => html`<${Rule} key=${at} rule=${rule} />`)}</ul>`}`}<//>
  </div>`;
}

/** Describes the methods of a rule. */
function methodsOf({ access, methods = [] }) {
  if (!methods.length) return access === 'deny' ? 'every request' : 'only reading';
  return methods.every((method) => READING.includes(method)) ? 'only reading' : methods.join(', ');
}

/** A rule; `all` are the removable rules. */
function Rule({ rule, all, again }) {
  const { host, session, access, by, created_ms: made, private: near, role } = rule;
  const [word, kind] = ACCESS[access];
  // Titles come with the listing of sessions.
  useStore(sessions);
  const remove = async () => {
    const same = all.filter((one) => one.host === host && one.session === session);
    const where = session ? 'in this chat' : 'in every chat';
    const text = `${same.length > 1 ? `${plural(same.length, 'rule')} about this site ${where} are removed. ` : ''}kiso then treats it like a site without a rule.`;
    if (!await confirm({ title: `Remove the rule about ${host}?`, text, action: 'Remove' })) return;
    try {
      await request('DELETE', '/network', { query: { host, session } });
    } catch (error) {
      // Somebody else has already removed it.
      if (error.status !== 404) throw error;
    }
    toast(`The rule about ${host} is removed`, 'good');
    again();
  };
  return html`<li><p><span class="strong"><${Said}>${host === '*' ? 'every site' : host}<//></span> <${Badge} kind=${kind}>${word}<//></p>
    <p class="lists-marks"><span>${methodsOf(rule)}</span>
      ${near && html`<span>also at private addresses</span>`}
      ${role && html`<span>for ${role === 'admin' ? 'administrators' : 'other users'}</span>`}
      ${all && html`<span>${session ? html`in the chat <a href=${href('s', session)}><bdi>${titleOf(session)}</bdi></a>` : 'in every chat'}</span>
        <span>from <${Said}>${by}<//>, <${Time} ms=${made} /></span>`}</p>
    ${all && html`<${Button} kind="quiet small" icon="trash" label=${`Remove the rule about ${host}`} onClick=${remove} />`}</li>`;
}
