// Skills to install: the packages of kiso, and the entries of the signed indexes that `config.toml` names.

import { html, useState } from '../lib/preact.js';
import { get } from '../lib/api.js';
import { bytes } from '../lib/format.js';
import { Badge, Busy, CopyButton, Icon, Said, Trouble, announce } from '../lib/ui.js';

/** The search runs only on request, because each one downloads files from other machines. */
export function Indexes() {
  const [query, setQuery] = useState('');
  const [state, set] = useState({});
  const search = async (event) => {
    event?.preventDefault();
    set({ loading: true });
    try {
      const found = await get('/indexed_skills', { q: query.trim() });
      set({ found });
      announce(`${found.items.length + found.more} found`);
    } catch (error) {
      set({ error });
    }
  };
  return html`<details class="card skills-more">
    <summary><h2>Find more skills</h2> <span class="muted">packages such as Python, and the signed indexes that this kiso knows</span></summary>
    <form class="skills-ask" role="search" aria-label="Skills in indexes" onSubmit=${search}>
      <div class="skills-search"><${Icon} name="search" />
        <input type="search" value=${query} maxlength="200" placeholder="Words, or nothing for all of them"
          aria-label="Search the indexes" onInput=${(event) => setQuery(event.target.value)} /></div>
      <button class="button primary" disabled=${state.loading}><span>Search</span></button>
    </form>
    ${state.loading && html`<${Busy}>Reading the indexes…<//>`}
    ${state.error && html`<${Trouble} error=${state.error} again=${() => search()} />`}
    ${state.found && html`<${Found} of=${state.found} />`}
  </details>`;
}

function Found({ of }) {
  return html`${of.problems.map((one) => html`<p key=${one.message} class="skills-broken" role="alert"><${Icon} name="alert" size=${16} />
      ${' '}<${Said}>${one.message}<//> (<code>${one.code}</code>)</p>`)}
    ${!of.items.length && !of.problems.length && html`<p class="muted">No skill has all of these words.</p>`}
    ${of.items.length > 0 && html`<ul class="skills-list" aria-label="Found in indexes">
      ${of.items.map((one) => html`<${Item} key=${`${one.index.at} ${one.name}`} of=${one} />`)}</ul>`}
    ${of.more > 0 && html`<p class="muted">${of.more} more; search for more words.</p>`}
    ${!of.indexes.length && html`<p class="muted">These are the packages of kiso itself. An administrator can add indexes of others: “Indexes” in the documentation, docs/registry.md, says how.</p>`}`;
}

const KINDS = { 'agent-skill': 'Agent Skill', component: 'component', package: 'package' };

/** A search result. Its texts come from the author of the index. */
function Item({ of }) {
  const { index, publisher } = of;
  // The packages of kiso are a part of the program, so nobody needs to sign them.
  const builtIn = index.key == null;
  return html`<li class="card skills-found" data-kind=${of.kind}>
    <h3><${Said}>${of.name}<//></h3>
    <p class="skills-marks"><span class="muted"><${Said}>${of.version}<//></span>
      <${Badge}>${KINDS[of.kind] ?? of.kind}<//>
      ${of.installed != null && html`<${Badge} kind="busy">installed: <${Said}>${of.installed}<//><//>`}</p>
    <p class="skills-about"><${Said}>${of.summary}<//></p>
    <dl class="skills-facts">
      ${of.commands?.length > 0 && html`<div><dt>Commands</dt><dd><span><${Said}>${of.commands.join(', ')}<//></span></dd></div>`}
      <div><dt>Publisher</dt><dd>${builtIn ? 'part of kiso' : publisher ? html`<span><${Said}>${publisher.label ?? publisher.key}<//>${publisher.trusted ? '' : ', not trusted here'}</span>` : 'not signed'}</dd></div>
      <div><dt>Index</dt><dd><span><${Said}>${index.name}<//>${!builtIn && html`, <${Said}>${index.at}<//>`}</span></dd></div>
      <div><dt>File</dt><dd><span><${Said}>${of.place}<//>, ${bytes(of.size)}${of.license && html`, <${Said}>${of.license}<//>`}</span></dd></div>
      <div><dt>Install</dt><dd><code>${of.command}</code><${CopyButton} text=${of.command} label=${`Copy the command that installs ${of.name}`} /></dd></div>
    </dl></li>`;
}
