// Completes the Markdown of a text that is still being written: `**bo` is shown as bold at once, instead of stars that vanish
// later.

const PAIRS = { '*': true, _: true, '~': true };
const WORD = /[\p{L}\p{N}]/u;

/** Returns `text` with open markers closed, and without a final marker whose meaning is not known yet. */
export function heal(text) {
  const { open, code, cut } = scan(text);
  if (code) return `${text.slice(0, code.at)}${code.at + code.run.length < text.length ? `${text.slice(code.at)}${code.run}` : ''}${closers(open)}`;
  let healed = cut === null ? text : cut(text);
  const bare = healed.replace(/[*_~`!\\[$<]+$/, '').trimEnd();
  const lost = healed.slice(bare.length);
  // Closing markers stay; markers that only might open something are hidden for now.
  if (lost && !closes(lost, open, bare)) healed = bare;
  else if (open.length) healed = healed.trimEnd();
  return healed + closers(scan(healed).open);
}

const closers = (open) => open.map(({ run }) => run).reverse().join('');

const closes = (lost, open, bare) => PAIRS[lost[0]] && bare !== '' && !open.some(({ at }) => at >= bare.length);

/**
 * Returns a position at which a long text can be split because no marker is open there: the last such space within `most`
 * characters.
 */
export function parting(text, most) {
  const { spaces } = scan(text.slice(0, most));
  if (spaces.sentence > most / 3) return spaces.sentence;
  if (spaces.any > most / 3) return spaces.any;
  const space = text.lastIndexOf(' ', most);
  return space > most / 3 ? space + 1 : most;
}

/**
 * Scans the text for its state at the end: `open` (open markers), `code` (a run of backticks), `cut` (how to treat an incomplete
 * link), and the `spaces` at which no marker is open.
 */
function scan(text) {
  const open = [];
  const spaces = { any: 0, sentence: 0 };
  const brackets = [];
  let cut = null;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (sign === '\\') {
      at += 1;
    } else if (sign === '`') {
      const run = /^`+/.exec(text.slice(at, at + 64))[0];
      const end = closing(text, at + run.length, run);
      if (end < 0) return { open, code: { at, run }, cut, spaces };
      at = end + run.length - 1;
    } else if (PAIRS[sign]) {
      let end = at + 1;
      while (text[end] === sign) end += 1;
      pair(open, text, at, end);
      at = end - 1;
    } else if (sign === '[') {
      brackets.push(at);
    } else if (sign === ']' && brackets.length) {
      const from = brackets.pop();
      if (text[at + 1] !== '(') continue;
      const end = text.indexOf(')', at);
      if (end < 0) {
        const picture = text[from - 1] === '!';
        const label = text.slice(from + 1, at);
        cut = (whole) => (picture ? whole.slice(0, from - 1) : `${whole.slice(0, from)}${label}`);
        return { open: open.filter((one) => one.at < from), code: null, cut, spaces };
      }
      at = end;
    } else if ((sign === ' ' || sign === '\n') && !open.length && !brackets.length) {
      spaces.any = at + 1;
      if (sign === '\n' || '.!?:;'.includes(text[at - 1])) spaces.sentence = at + 1;
    }
  }
  const from = brackets.at(-1);
  // The text of a link is shown while it is written; its brackets are not.
  if (from !== undefined && text.length - from < 200) {
    const before = text[from - 1] === '!' ? from - 1 : from;
    cut = (whole) => whole.slice(0, before) + (before === from ? whole.slice(from + 1) : '');
  }
  return { open, code: null, cut, spaces };
}

function closing(text, from, run) {
  for (let at = text.indexOf(run, from); at >= 0; at = text.indexOf(run, at)) {
    let end = at + run.length;
    if (text[end] !== '`') return at;
    while (text[end] === '`') end += 1;
    at = end;
  }
  return -1;
}

/** Handles a run of stars, underscores or tildes, which opens, closes, or is plain text. */
function pair(open, text, at, end) {
  const [before, after] = [text[at - 1] ?? ' ', text[end] ?? ' '];
  const run = text.slice(at, end);
  if (run.length > 3 || (run[0] === '~' && run.length !== 2)) return;
  const inWord = run[0] === '_' && WORD.test(before) && WORD.test(after);
  if (inWord) return;
  const canClose = !/\s/.test(before);
  const canOpen = !/\s/.test(after);
  const last = open.findLastIndex((one) => one.run === run);
  if (canClose && last >= 0) open.length = last;
  else if (canOpen && end < text.length) open.push({ run, at });
}
