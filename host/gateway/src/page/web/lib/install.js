// Installation of a skill: a file is dropped or chosen, its requested permissions are shown, and only selected ones are granted.

import { html, useEffect, useLayoutEffect, useRef, useState } from './preact.js';
import { ApiError, get, me, part } from './api.js';
import { bytes } from './format.js';
import { Asked, NOTHING, asksAnything, choiceOf, everything, fitting, isNothing, permissions, saveGrant } from './grants.js';
import { Busy, Button, Dialog, Icon, Said, Trouble, report, toast } from './ui.js';

/** Uploads a file; `onProgress` receives the progress from 0 to 1. Returns a promise with `abort`. */
function upload(file, query, onProgress) {
  const asking = new XMLHttpRequest();
  const sent = new Promise((done, failed) => {
    const asked = new URLSearchParams(query);
    asking.open('POST', asked.size ? `/skills?${asked}` : '/skills');
    asking.setRequestHeader('x-kiso-page', '1');
    asking.setRequestHeader('accept', 'application/json');
    asking.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    asking.onload = () => {
      let told = null;
      try {
        told = JSON.parse(asking.responseText);
      } catch {
        // Not a response of kiso: probably of a proxy in between.
      }
      if (asking.status === 201) return done(told);
      if (asking.status === 401) me.set(null);
      return failed(new ApiError(asking.status, told?.error ?? { code: 'unknown', message: `the answer was ${asking.status}` }));
    };
    asking.onerror = () => failed(new ApiError(0, { code: 'away', message: 'the file could not be sent', hint: 'is the daemon there?' }));
    asking.onabort = () => failed(new DOMException('', 'AbortError'));
    asking.send(file);
  });
  return { sent, abort: () => asking.abort() };
}

const MANIFEST = 'kiso.toml';

/** Encodes a number as in WebAssembly (unsigned LEB128). */
function leb(number) {
  const bytes = [];
  do {
    bytes.push((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
    number >>>= 7;
  } while (number);
  return bytes;
}

/** Appends a manifest to a component as a custom section, as `kiso skill pack` does. */
async function packed(component, manifest) {
  const name = new TextEncoder().encode(MANIFEST);
  const text = new Uint8Array(await manifest.arrayBuffer());
  const content = [...leb(name.length), ...name];
  const head = new Uint8Array([0, ...leb(content.length + text.length), ...content]);
  return new File([component, head, text], component.name, { type: 'application/wasm' });
}

/** Returns all dropped files, including those in folders; must be called while the event is handled. */
function filesIn(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return Promise.resolve([...transfer.files]);
  const file = (entry) => new Promise((done, failed) => { entry.file(done, failed); });
  const inside = (entry) => new Promise((done, failed) => { entry.createReader().readEntries(done, failed); });
  const all = async (entry) => (entry.isDirectory ? (await Promise.all((await inside(entry)).filter((one) => one.isFile).map(file))) : [await file(entry)]);
  return Promise.all(entries.map(all)).then((lists) => lists.flat());
}

/** Supported files. */
const KINDS = 'A skill is a .wasm file, a .zip or .skill archive with a SKILL.md in it, or a SKILL.md alone.';

/** An overlay for files that are dropped anywhere on the page, and with `button` also a button to choose one. */
export function Installer({ button, onInstalled }) {
  const [file, setFile] = useState(null);
  const [over, setOver] = useState(false);
  const chooser = useRef(null);
  useLayoutEffect(() => {
    let depth = 0;
    const carries = (event) => event.dataTransfer?.types.includes('Files');
    const enter = (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      depth += event.type === 'dragenter' ? 1 : 0;
      setOver(true);
    };
    const leave = () => {
      depth = Math.max(0, depth - 1);
      if (depth === 0) setOver(false);
    };
    const drop = (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      depth = 0;
      setOver(false);
      filesIn(event.dataTransfer).then(take).catch(report);
    };
    const listeners = { dragenter: enter, dragover: enter, dragleave: leave, drop };
    for (const [name, listener] of Object.entries(listeners)) document.addEventListener(name, listener);
    return () => {
      for (const [name, listener] of Object.entries(listeners)) document.removeEventListener(name, listener);
    };
  }, []);
  const take = async (given) => {
    const files = [...given];
    const components = files.filter((one) => /\.wasm$/i.test(one.name));
    const agents = files.filter((one) => /\.(zip|skill)$/i.test(one.name) || /^skill\.md$/i.test(one.name));
    const manifests = files.filter((one) => /\.toml$/i.test(one.name));
    // The folder of a skill's source may contain other manifests, such as Cargo's.
    const manifest = manifests.find((one) => one.name === MANIFEST) ?? (manifests.length === 1 ? manifests[0] : null);
    if (files.length === 1 && !manifest) setFile(files[0]);
    else if (components.length === 1) setFile(manifest ? await packed(components[0], manifest) : components[0]);
    else if (components.length || agents.length > 1) toast('Drop one skill at a time', 'bad', 'nothing was installed');
    else if (agents.length && files.length > 1) toast('Pack the folder first', 'bad', 'a skill with several files is installed as a .zip archive of its folder');
    else if (files.length) toast('No skill found', 'bad', KINDS);
  };
  return html`${button && html`<${Button} kind="primary" icon="plus" title=${KINDS} onClick=${() => chooser.current.click()}>Install a skill<//>
    <input ref=${chooser} class="unseen" type="file" accept=".wasm,.toml,.zip,.skill,.md,application/wasm,application/zip" multiple tabindex="-1" aria-label="File of the skill"
      onChange=${(event) => { take([...event.target.files]).catch(report); event.target.value = ''; }} />`}
    ${over && html`<div class="install-over"><p><${Icon} name="skills" size=${40} /><span class="strong">Drop a skill to install it</span>
      <span>${KINDS} You review its permissions before anything is granted.</span></p></div>`}
    ${file && html`<${Install} key=${`${file.name} ${file.lastModified}`} file=${file} onClose=${() => setFile(null)} onInstalled=${onInstalled} />`}`;
}

/** Returns the current grant of a skill; null if there is no skill of that name. */
async function grantOf(name) {
  const { items, next } = await get('/skills', { limit: 500 });
  if (!next && !items.some((one) => one.skill === name)) return null;
  return get(`/skills/${part(name)}`).then((skill) => skill.grant, () => null);
}

/** Uploads the file, and asks for a name and permissions if necessary. */
function Install({ file, onClose, onInstalled }) {
  const [state, set] = useState({ at: 'sending' });
  const [progress, setProgress] = useState(0);
  const [name, setName] = useState('');
  const running = useRef(null);
  const send = async (query, then) => {
    set({ at: 'sending' });
    setProgress(0);
    try {
      running.current = upload(file, query, setProgress);
      const skill = await running.current.sent;
      const undone = await then?.(skill.skill).then(() => null, (error) => error);
      if (undone) toast(`${skill.skill} is installed, but was not granted what you ticked`, 'bad', undone.message);
      else toast(`${[skill.skill, skill.version].filter(Boolean).join(' ')} is installed`, 'good');
      onClose();
      onInstalled(skill);
    } catch (error) {
      await refused(error, query).catch((other) => set({ at: 'error', error: other, query }));
    }
  };
  const refused = async (error, query) => {
    if (error.name === 'AbortError') return;
    if (error.code === 'grant_needed' && error.more.asks) {
      // An update asks only for additional permissions and keeps the others, unless it may come from somebody else.
      const { skill, asks, doubt, change } = error.more;
      const has = permissions(doubt ? null : await grantOf(skill));
      set({ at: 'asks', query, skill, beyond: permissions(asks), workspace: asks.workspace, has, doubt, change });
    } else if (!query.name && (error.message?.includes('?name=NAME') || error.code === 'bad_request' && /kiso\.toml/.test(error.message))) {
      set({ at: 'name' });
    } else if (query.name && error.status >= 400 && error.status < 500) {
      // The name is taken or invalid; another one may work.
      set({ at: 'name', error });
    } else {
      set({ at: 'error', error, query });
    }
  };
  useEffect(() => {
    send({});
    return () => running.current?.abort();
  }, []);
  const title = { asks: `Install ${state.skill}?`, name: 'Name this skill', error: 'Not installed' }[state.at] ?? 'Installing skill';
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <p class="muted install-file"><${Icon} name="file" /><${Said}>${file.name}<//> · ${bytes(file.size)}</p>
    ${state.at === 'sending' && html`<${Sending} progress=${progress} onClose=${onClose} />`}
    ${state.at === 'asks' && html`<${Asks} ...${state} send=${send} onClose=${onClose} />`}
    ${state.at === 'name' && html`<${Name} error=${state.error} name=${name} setName=${setName} send=${send} onClose=${onClose} />`}
    ${state.at === 'error' && html`<${Trouble} error=${state.error} /><p class="muted">${KINDS}</p>
      <footer><${Button} onClick=${onClose}>Close<//>
        ${mayWork(state.error) && html`<${Button} icon="retry" onClick=${() => send(state.query)}>Try again<//>`}</footer>`}
  <//>`;
}

/** Returns whether the same file may be accepted later. */
const mayWork = ({ status, code }) => status === 0 || status >= 500 || [408, 429].includes(status) || code === 'busy';

/** A file without a manifest has no name. */
function Name({ error, name, setName, send, onClose }) {
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  return html`<form class="install-name" onSubmit=${(event) => { event.preventDefault(); send({ name: name.trim() }); }} novalidate>
    <p>The file has no name that a skill can have. Choose one. The skill is granted nothing.</p>
    <div class="field"><label for="install-name">Name</label>
      <input id="install-name" ref=${field} value=${name} maxlength="64" spellcheck=${false} autocapitalize="none" autocomplete="off"
        aria-invalid=${error ? 'true' : undefined} aria-describedby=${error ? 'install-name-help install-name-wrong' : 'install-name-help'}
        onInput=${(event) => setName(event.target.value)} />
      <p class="muted" id="install-name-help">Lower-case letters, digits and “-”, beginning with a letter.</p>
      ${error && html`<p class="wrong" id="install-name-wrong"><${Icon} name="alert" size=${16} />${error.message}</p>`}</div>
    <footer><${Button} onClick=${onClose}>Cancel<//><button class="button primary" disabled=${!name.trim()}><span>Install</span></button></footer></form>`;
}

function Sending({ progress, onClose }) {
  const percent = Math.round(progress * 100);
  return html`${progress < 1 ? html`<p class="install-progress"><label for="install-progress">Sending</label>
    <progress id="install-progress" max="100" value=${percent}></progress><span>${percent} %</span></p>`
    : html`<${Busy}>Checking and compiling…<//>`}
    <footer><${Button} onClick=${onClose}>Cancel<//></footer>`;
}

/** The requested permissions. Nothing is selected at first, because nothing is granted without consent. */
function Asks({ skill, beyond, workspace, has, doubt, change, query, send, onClose }) {
  const [choice, set] = useState(NOTHING);
  const nothing = isNothing(choice);
  const update = !doubt && (asksAnything(has) || Boolean(workspace));
  const all = everything(beyond);
  const whole = !update && ['hosts', 'secrets', 'others'].every((kind) => choice[kind].length === all[kind].length) && choice.limits === all.limits
    && choice.hosts.every((one) => !one.private && beyond.http.some((need) => need.host === one.host));
  const both = { ...beyond, http: [...has.http, ...beyond.http], secrets: [...has.secrets, ...beyond.secrets], others: [...has.others, ...beyond.others] };
  // The granted memory and time stay if the file requests no more; otherwise the user is asked again.
  const limited = choiceOf(both, has).limits !== 'none';
  const limitsAgain = limited && all.limits !== 'none';
  const old = { ...choiceOf(both, has), limits: limited && !limitsAgain ? 'all' : 'none' };
  const wanted = {
    hosts: [...old.hosts.filter((one) => !choice.hosts.some((other) => other.host === one.host)), ...choice.hosts],
    secrets: [...new Set([...old.secrets, ...choice.secrets])],
    others: [...old.others.filter((one) => !choice.others.some((other) => other.text === one.text)), ...choice.others], limits: old.limits === 'all' ? 'all' : choice.limits,
  };
  // After an installation with the permissions of every skill.
  const give = (kept) => (isNothing(kept) ? undefined : async (name) => {
    // The new version may no longer request some of the granted permissions.
    const needs = permissions((await get(`/skills/${part(name)}`)).needs);
    return saveGrant(name, needs, permissions(), fitting(needs, kept));
  });
  const install = (grant, then) => send({ ...query, grant }, then);
  const changes = change?.length > 0 && html`<p><${Icon} name="alert" size=${16} /> It changes what models are told and what is checked:</p>
    <pre class="install-change"><${Said}>${change.join('\n')}<//></pre>`;
  if (!workspace && !asksAnything(beyond) && (changes || doubt)) {
    return html`${doubt && html`<p><${Icon} name="alert" size=${16} /> <${Said}>${doubt}<//>. It takes the place of the installed one.</p>`}
      ${changes}<footer><${Button} onClick=${onClose}>Cancel<//><${Button} kind="primary" onClick=${() => install(doubt ? 'basic' : 'keep')}>Install<//></footer>`;
  }
  return html`${doubt && html`<p><${Icon} name="alert" size=${16} /> <${Said}>${doubt}<//>. Nothing that was granted goes on to it, no
      stored value either.</p>`}
    ${changes}
    <p><bdi class="strong">${skill}</bdi> asks ${update ? 'for more than it was granted' : 'for this'}. ${update
      ? `It keeps what it was granted${limitsAgain ? ', except memory and time' : ''}.` : 'Only what you select is granted. You can change this later.'}
      ${' '}<button type="button" class="link" onClick=${() => set(everything(beyond))}>Select all</button></p>
    ${workspace && html`<p><${Icon} name="alert" size=${16} /> It also asks to <strong>${workspace}</strong> files in the chat’s workspace,
      which is granted only with everything else.</p>`}
    <${Asked} needs=${beyond} granted=${permissions()} choice=${choice} onChange=${set} fresh=${true} />
    <footer><${Button} kind=${nothing ? 'primary' : ''} onClick=${() => install('basic', give(old))}>Install without permissions<//>
      ${workspace && html`<${Button} onClick=${() => install('all')}>Install and grant everything<//>`}
      <${Button} kind=${nothing ? '' : 'primary'} disabled=${nothing}
        onClick=${() => (whole ? install('all') : install('basic', give(wanted)))}>Install and grant selected<//></footer>`;
}
