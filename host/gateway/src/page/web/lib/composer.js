// The message field, with pills, completion and files.

import { html, store, useEffect, useLayoutEffect, useRef, useState, useStore } from './preact.js';
import { bytes, plural, stamp } from './format.js';
import { complete, input, loadInput, pillOf } from './complete.js';
import { openDraft, rememberSent, sentIn } from './drafts.js';
import { notifications, toggleNotifications } from './notify.js';
import { route } from './router.js';
import { Button, Icon, announce, report } from './ui.js';
import { chosenFolders, foldersOf, readFolder } from './upload-folder.js';
import { again, drop, filesOf, filesPasted, restore, take, upload, uploadFolder, uploads } from './uploads.js';

/** Length in characters at which the length is displayed, and the daemon's default limit for a message in bytes. */
const LONG = 50_000;
const USUAL_LIMIT = 2_097_152;

/** Maximum length in characters of text that is inserted as if typed, so that the browser can undo it. */
const TYPED = 100_000;

/** Length in characters at which pasted text becomes a file, because it would be unmanageable in the field. */
const PASTED = 10_000;

/** Touch devices have no Shift key. */
const finger = matchMedia('(pointer: coarse)');

const filled = store(null);

/** Writes a text into the field of a session, for editing. Undo restores the previous text. */
export const fillComposer = (session, text) => filled.set({ session, text });

const NONE = [];

/**
 * `onSend(text)` receives the written text, `onStop()` ends the active run (`running`). Text that is written during a run is
 * sent, too.
 */
export function Composer({ session, running, onSend, onStop }) {
  const field = useRef(null);
  const draft = useRef(null);
  const recalled = useRef({ at: -1, text: '' });
  const closed = useRef(null);
  const [written, setWritten] = useState({ empty: true, pill: null, length: 0 });
  const [list, setList] = useState(null);
  const [chosen, choose] = useState(0);
  const files = useStore(uploads, (all) => all[session] ?? NONE);
  const fill = useStore(filled);
  const { pills } = useStore(input);
  const uploading = files.some((one) => one.state === 'waiting' || one.state === 'sending');
  const ready = !uploading && (!written.empty || files.some((one) => one.state === 'done'));

  const look = () => {
    const { value } = field.current;
    const [empty, pill, length] = [!value.trim(), pillOf(value), value.length];
    setWritten((old) => (old.empty === empty && old.pill === pill && (old.length === length || length < LONG) ? old : { empty, pill, length }));
    grow(field.current);
    suggest();
  };
  const suggest = () => {
    const { value, selectionStart, selectionEnd } = field.current;
    const here = document.activeElement === field.current && selectionStart === selectionEnd;
    const found = here ? complete(value, selectionStart, input.get()) : null;
    const place = found && `${found.label} ${found.from}`;
    if (place !== closed.current) closed.current = null;
    const shown = closed.current ? null : found;
    if (shown && shown.label !== list?.label) announce(`${shown.label}: ${plural(shown.options.length, 'suggestion')}`);
    if (shown?.options.map((one) => one.text).join() !== list?.options.map((one) => one.text).join()) choose(shown?.open ? -1 : 0);
    setList(shown);
  };
  const close = () => {
    closed.current = list && `${list.label} ${list.from}`;
    setList(null);
  };
  const accept = (option) => {
    const { from, to } = list;
    const space = option.text.endsWith('=') || /^\s/.test(field.current.value.slice(to, to + 1)) ? '' : ' ';
    write(field.current, option.text + space, from, to);
  };
  const toggle = (name) => {
    const { value } = field.current;
    const old = written.pill ? /^!\S+\s?/.exec(value)[0].length : 0;
    write(field.current, name === written.pill ? '' : `!${name} `, 0, old);
    field.current.setSelectionRange(field.current.value.length, field.current.value.length);
  };
  const send = () => {
    if (!ready) {
      if (uploading) announce('The files are still uploading');
      return;
    }
    const text = field.current.value.trim();
    onSend(isCommand(text) ? text : withFiles(text, take(session)));
    if (text) rememberSent(session, text);
    learn();
    field.current.value = '';
    recalled.current = { at: -1, text: '' };
    draft.current.clear();
    look();
    field.current.focus();
  };

  // Recalls the user's earlier messages, like a shell, if the field is empty or contains an unchanged earlier message.
  const recall = (step) => {
    const { value, selectionStart } = field.current;
    const { at, text } = recalled.current;
    const untouched = at >= 0 && value === text && (selectionStart === value.length || selectionStart === 0);
    if (value !== '' && !untouched) return false;
    const all = sentIn(session);
    const next = (untouched ? at : -1) + step;
    if (next < -1 || next >= all.length || (next === -1 && !untouched)) return untouched;
    recalled.current = { at: next, text: all[next] ?? '' };
    closed.current = null;
    write(field.current, recalled.current.text, 0, value.length);
    setList(null);
    return true;
  };

  const keys = (event) => {
    // During composition, Enter and arrows belong to the input method.
    if (event.isComposing || event.keyCode === 229) return;
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.shiftKey;
    const option = list?.options[chosen];
    const done = () => {
      event.preventDefault();
      event.stopPropagation();
    };
    if (list && plain && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      const many = list.options.length;
      choose(event.key === 'ArrowDown' ? (chosen + 1) % many : (Math.max(chosen, 0) + many - 1) % many);
      done();
    } else if (list && plain && (event.key === 'Tab' || (event.key === 'Enter' && option && !whole(field.current, list, option)))) {
      accept(option ?? list.options[0]);
      done();
    } else if (list && event.key === 'Escape') {
      close();
      done();
    } else if (event.key === 'Tab') {
      // The list is scrollable and therefore focusable; it must be gone before it gets the focus.
      setList(null);
    } else if (event.key === 'Enter' && !event.shiftKey && !event.altKey && (!finger.matches || event.ctrlKey || event.metaKey)) {
      send();
      done();
    } else if (plain && (event.key === 'ArrowUp' || event.key === 'ArrowDown') && recall(event.key === 'ArrowUp' ? 1 : -1)) {
      done();
    }
  };

  useLayoutEffect(() => {
    const put = (text) => {
      field.current.value = text;
      look();
    };
    draft.current = openDraft(session, () => field.current.value, put);
    put(draft.current.text);
    restore(session);
    loadInput();
    // Keeps the focus at the message that a link led to. On a phone, the keyboard would cover the text.
    if (!finger.matches && route.get()[2] !== 'm') field.current.focus({ preventScroll: true });
    return draft.current.close;
  }, [session]);

  useEffect(() => {
    if (fill?.session !== session) return;
    filled.set(null);
    write(field.current, fill.text, 0, field.current.value.length);
    field.current.scrollTop = field.current.scrollHeight;
  }, [fill]);

  return html`<form class="composer" aria-label="New message" onSubmit=${(event) => { event.preventDefault(); send(); }}>
    ${pills.length > 0 && html`<div class="composer-pills" role="group" aria-label="Pills">
      ${pills.map((one) => html`<button key=${one.name} type="button" class="composer-pill" aria-pressed=${String(one.name === written.pill)}
        title=${one.description} onClick=${() => toggle(one.name)}>${one.name}</button>`)}
    </div>`}
    <div class="composer-box">
      ${list && html`<${Options} list=${list} chosen=${chosen} onChoose=${choose} onAccept=${accept} />`}
      ${files.length > 0 && html`<ul class="composer-files" aria-label="Files to send">
        ${files.map((one) => html`<${Chip} key=${one.id} file=${one} session=${session} />`)}</ul>`}
      <textarea ref=${field} rows="1" aria-label="Message" placeholder=${running ? 'Add a follow-up' : 'Write a message'}
        aria-autocomplete="list" aria-haspopup="listbox" aria-controls=${list ? 'composer-list' : undefined}
        aria-activedescendant=${list && chosen >= 0 ? `composer-option-${chosen}` : undefined} aria-describedby="composer-hint" autocomplete="off"
        enterkeyhint=${finger.matches ? 'enter' : 'send'} onInput=${() => { draft.current.write(field.current.value); look(); }} onKeyDown=${keys}
        onKeyUp=${(event) => MOVES.has(event.key) && suggest()} onClick=${suggest} onBlur=${() => setList(null)} onFocus=${loadInput}></textarea>
      <div class="composer-bar">
        <${Attach} session=${session} />
        <${Hint} length=${written.length} uploading=${uploading} running=${running} />
        ${running && onStop && html`<${Button} icon="stop" label="Stop" onClick=${onStop} />`}
        <${Button} icon="send" kind="primary" label="Send" disabled=${!ready} onClick=${send} />
      </div>
    </div>
    <${Incoming} session=${session} onFiles=${() => field.current.focus()} />
  </form>`;
}

/** Keys that move the caret without changing text. */
const MOVES = new Set(['ArrowLeft', 'ArrowRight', 'Home', 'End', 'PageUp', 'PageDown']);

/** Inserts text as if typed, so that the browser can undo it. */
function write(field, text, from, to) {
  field.focus();
  field.setSelectionRange(from, to);
  if (!text && from === to) return;
  const typed = text.length < TYPED && document.execCommand(text ? 'insertText' : 'delete', false, text);
  if (typed) return;
  field.setRangeText(text, from, to, 'end');
  field.dispatchEvent(new Event('input', { bubbles: true }));
}

/** Adjusts the height to the text, in browsers that do not do this themselves. */
function grow(field) {
  if (CSS.supports('field-sizing', 'content')) return;
  field.style.height = 'auto';
  field.style.height = `${field.scrollHeight}px`;
}

/** Returns whether a text is a command of the page's field, such as `/model`. */
export const isCommand = (text) => /^\/[a-z]+(\s|$)/.test(text);

/** Returns whether the option is already typed in full, so that Enter can send the message. */
const whole = (field, { from, to }, option) => field.value.slice(from, to) === option.text;

/** Appends the list of attached files and folders. In a command line, the user writes their names. */
function withFiles(text, given) {
  const isLine = /^\s*[$@]/.test(text);
  const names = given.filter((one) => !isLine || (!one.count && !text.includes(one.name))).map(({ name, count }) => (count ? `${name}/` : name));
  return names.length ? `${text}\n\nFiles: ${names.join(', ')}`.trim() : text;
}

/** Suggestions above the field. The field keeps the focus; `aria-activedescendant` identifies the selected one. */
function Options({ list, chosen, onChoose, onAccept }) {
  const box = useRef(null);
  useLayoutEffect(() => box.current.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen, list]);
  return html`<div class="composer-options" onMouseDown=${(event) => event.preventDefault()}>
    <p class="composer-options-label" aria-hidden="true">${list.label}</p>
    <ul ref=${box} id="composer-list" role="listbox" tabindex="0" aria-label=${list.label}>
      ${list.options.map((one, at) => html`<li key=${one.text} id=${`composer-option-${at}`} role="option" aria-selected=${String(at === chosen)}
        onMouseMove=${() => onChoose(at)} onClick=${() => onAccept(one)}>
        <span class="mono composer-option"><bdi>${one.text.slice(0, one.at)}<mark>${one.text.slice(one.at, one.at + one.length)}</mark>${''
          }${one.text.slice(one.at + one.length)}</bdi>${one.more && html` <span class="composer-args">${one.more}</span>`}</span>
        ${one.about && html`<bdi class="composer-about">${one.about}</bdi>`}
      </li>`)}
    </ul>
  </div>`;
}

/** A file with its progress and its actions. */
function Chip({ file, session }) {
  const { id, name, state, sent, error, preview, count, there } = file;
  // A file with the name of a picture may not be one.
  const [seen, see] = useState(true);
  const under = state === 'waiting' || state === 'sending';
  const about = error ? error.message : state === 'waiting' ? 'waiting' : state === 'sending' ? (count ? `${there} of ${plural(count, 'file')}` : `${Math.floor(sent * 100)} %`)
    : count ? `${plural(count, 'file')}, ${bytes(file.bytes)}` : bytes(file.bytes);
  return html`<li class=${`composer-file ${state}`}>
    ${preview && seen ? html`<img src=${preview} alt="" onError=${() => see(false)} />` : html`<${Icon} name=${error ? 'alert' : count ? 'folder' : 'file'} />`}
    <span class="composer-file-text"><bdi class="composer-file-name" title=${name}>${name}</bdi>
      <span class="muted" role=${error ? 'alert' : undefined}>${about}${error?.hint ? ` (${error.hint})` : ''}</span></span>
    ${under && html`<progress max="1" value=${sent} aria-label=${`Sending ${name}`}></progress>`}
    ${state === 'failed' && html`<${Button} kind="quiet small" icon="retry" label=${`Send ${name} again`} onClick=${() => again(session, id)} />`}
    <${Button} kind="quiet small" icon="close" label=${under ? `Cancel ${name}` : `Remove ${name}`} onClick=${() => drop(session, id)} />
  </li>`;
}

function Attach({ session }) {
  const [chooser, folder] = [useRef(null), useRef(null)];
  // Returns the focus to the field after attaching. On a phone, that would open the keyboard.
  const write = () => finger.matches || document.querySelector('.composer textarea')?.focus();
  const picked = () => {
    upload(session, chooser.current.files);
    chooser.current.value = '';
    write();
  };
  const pickedFolder = () => {
    try {
      for (const one of chosenFolders(folder.current.files)) uploadFolder(session, one);
    } catch (error) {
      report(error);
    }
    folder.current.value = '';
    write();
  };
  // Phones cannot choose folders.
  const folders = 'webkitdirectory' in HTMLInputElement.prototype && !finger.matches;
  return html`<${Button} kind="quiet" icon="attach" label="Attach files" onClick=${() => chooser.current.click()} />
    <input ref=${chooser} type="file" multiple hidden aria-label="Files" onChange=${picked} />
    ${folders && html`<${Button} kind="quiet" icon="folder-up" label="Attach a folder" onClick=${() => folder.current.click()} />
      <input ref=${folder} type="file" webkitdirectory hidden aria-label="Folder" onChange=${pickedFolder} />`}`;
}

/** Number of sent messages after which the hint is no longer needed, and its storage key. */
const LEARNED = 3;
const WRITTEN = 'kiso.written';

const writtenOnes = () => Number(localStorage.getItem(WRITTEN)) || 0;

function learn() {
  try {
    localStorage.setItem(WRITTEN, String(Math.min(LEARNED, writtenOnes() + 1)));
  } catch {
    // The hint stays.
  }
}

/** Milliseconds of a run after which the page suggests notifications. */
const PATIENT = 10_000;

function Hint({ length, uploading, running }) {
  const notices = useStore(notifications);
  const [long, set] = useState(false);
  useEffect(() => {
    set(false);
    const timer = running && setTimeout(set, PATIENT, true);
    return () => clearTimeout(timer);
  }, [running]);
  const text = uploading ? 'You can send when the upload is done.'
    : length >= LONG ? `${bytes(length)} of text. Messages over ${bytes(USUAL_LIMIT)} are rejected unless you raise gateway.max_body_kib.`
      : finger.matches || writtenOnes() >= LEARNED ? '' : 'Enter to send, Shift+Enter for a new line';
  const offer = long && notices === 'off' && !uploading && length < LONG;
  return html`<p id="composer-hint" class=${`composer-hint ${length >= USUAL_LIMIT ? 'wrong' : ''}`}>${offer
    ? html`<button type="button" class="link" onClick=${() => toggleNotifications().catch(report)}>Notify me when this is done</button>` : text}</p>`;
}

/** Handles files and folders that are dropped anywhere on the page, or pasted. */
function Incoming({ session, onFiles }) {
  const [carries, set] = useState(false);
  // Registered before the first paint, so that files can be dropped as soon as the field is visible.
  useLayoutEffect(() => {
    let timer = 0;
    const gone = () => set(false);
    const here = () => !document.querySelector('dialog[open]');
    const carried = (event) => !event.defaultPrevented && event.dataTransfer.types.includes('Files');
    const over = (event) => {
      if (!carried(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = here() ? 'copy' : 'none';
      clearTimeout(timer);
      // Not every browser reports that a file leaves the window; this event repeats as long as the file is over it.
      timer = setTimeout(gone, 500);
      set(here());
    };
    const accept = (event, files) => {
      event.preventDefault();
      if (!files.length) return;
      upload(session, files);
      onFiles();
    };
    const dropped = (event) => {
      if (!carried(event)) return;
      clearTimeout(timer);
      gone();
      if (here()) foldersOf(event.dataTransfer).forEach((folder) => readFolder(folder).then((one) => uploadFolder(session, one), report));
      accept(event, here() ? filesOf(event.dataTransfer) : []);
    };
    const pasted = (event) => {
      const files = filesPasted(event.clipboardData);
      const other = event.target.closest?.('input, textarea:not(.composer textarea)');
      const text = event.clipboardData.getData('text/plain');
      if (!files.length && text.length >= PASTED && event.target.closest?.('.composer textarea')) {
        accept(event, [new File([text], `pasted-${stamp()}.txt`, { type: 'text/plain' })]);
        announce('The long text was attached as a file');
      } else if (files.length && !other && !document.querySelector('dialog[open]')) accept(event, files);
    };
    const heard = { dragenter: over, dragover: over, drop: dropped, paste: pasted };
    for (const [name, listener] of Object.entries(heard)) document.addEventListener(name, listener);
    return () => {
      clearTimeout(timer);
      for (const [name, listener] of Object.entries(heard)) document.removeEventListener(name, listener);
    };
  }, [session]);
  return carries && html`<div class="composer-drop">
    <p><${Icon} name="attach" size=${28} /><span>Drop files or folders to attach them</span></p></div>`;
}
