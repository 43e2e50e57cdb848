// Inline Markdown: words, emphasis, code, links, pictures and formulas.
//
// marked parses the text, and its tokens are built as elements in an inert document. HTML is never parsed: a tag from a model is
// text. DOMPurify checks the elements before they are added to the page.

import { Lexer, Marked } from '../vendor/marked.js';
import '../vendor/purify.js';
import { fileUrl } from './api.js';
import { viewOf } from './kinds.js';
import { href as routed } from './router.js';

/** Maximum number of characters that are parsed at once; marked takes quadratic time for hostile text. */
const LONGEST = 6_000;

/** Maximum number of markers in such a text; a text with more is shown unformatted. */
const MOST_SIGNS = 700;

/** Maximum depth of nested emphasis; deeper levels are flattened. */
const DEEPEST = 12;

/** A picture embedded in the text. */
const DATA_PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

/** Text without any of these characters needs no parsing. */
const SIGN = /[\\`*_~[\]!<&$\n]|:\/\/|@|www\./;

const inert = document.implementation.createHTMLDocument('');
const purify = globalThis.DOMPurify;
const CLASSES = new Set(['md-math', 'md-host', 'md-ref', 'md-boxed', 'md-over', 'md-under', 'md-l', 'md-r']);

/** MathML elements for layout. None of them links, loads or contains other markup. */
const MATH_TAGS = [
  'math', 'mrow', 'mi', 'mn', 'mo', 'mtext', 'mspace', 'mfrac', 'msqrt', 'mroot', 'msub', 'msup', 'msubsup', 'munder', 'mover', 'munderover', 'mtable', 'mtr', 'mtd',
];
const MATH_ATTRIBUTES = [
  'display', 'displaystyle', 'stretchy', 'fence', 'minsize', 'maxsize', 'lspace', 'rspace', 'width', 'accent', 'accentunder', 'movablelimits', 'linethickness', 'mathvariant',
];

purify.setConfig({
  IN_PLACE: true,
  ALLOWED_TAGS: ['span', 'bdi', 'strong', 'em', 'del', 'code', 'br', 'sup', 'sub', 'a', 'img', '#text', ...MATH_TAGS],
  ALLOWED_ATTR: ['href', 'src', 'alt', 'class', 'target', 'rel', 'title', 'dir', 'loading', 'decoding', ...MATH_ATTRIBUTES],
  ADD_URI_SAFE_ATTR: ['target', 'rel', 'dir', 'loading', 'decoding', ...MATH_ATTRIBUTES],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:|\/pub\/|\/sessions\/|#\/)/i,
});
purify.addHook('uponSanitizeAttribute', (node, attribute) => {
  if (attribute.attrName === 'class') attribute.keepAttr = CLASSES.has(attribute.attrValue);
  if (attribute.attrName === 'src') attribute.keepAttr = /^\/(?:pub|sessions)\//.test(attribute.attrValue) || DATA_PICTURE.test(attribute.attrValue);
});

const BREAK = /^<br ?\/?>/i;
const DOLLARS = /^\$\$([^$]+?)\$\$|^\$(?![\s$])((?:\\.|[^$\\\n])*?[^\s\\])\$(?![\p{L}\p{N}])/u;
const BRACKETS = /^\\\(([^]+?)\\\)|^\\\[([^]+?)\\\]/;

const NOTE = /^\[\^([^\]\s]{1,60})\]/;

/** A sign that a formula has and a price or a sentence does not. */
const MATHS = /[\\^_={}<>+*/()|]|^.{0,3}$|^-?\d+$/;

const marked = new Marked({
  gfm: true,
  breaks: true,
  tokenizer: {
    // Tags are text, except the one that models use in table cells.
    tag(source) {
      const found = BREAK.exec(source);
      return found ? { type: 'br', raw: found[0] } : undefined;
    },
  },
  extensions: [{
    name: 'formula',
    level: 'inline',
    start(source) {
      const at = source.search(/\$|\\[([]/);
      return at < 0 ? undefined : at;
    },
    tokenizer(source) {
      const found = source[0] === '$' ? DOLLARS.exec(source) : source[0] === '\\' ? BRACKETS.exec(source) : null;
      const text = found && (found[1] ?? found[2]);
      if (!text || (found[0][1] !== '$' && source[0] === '$' && !MATHS.test(text))) return undefined;
      return { type: 'formula', raw: found[0], text };
    },
  }, {
    // A reference to a footnote; `[^a]` without a footnote of that name is text.
    name: 'note',
    level: 'inline',
    start(source) {
      const at = source.indexOf('[^');
      return at < 0 ? undefined : at;
    },
    tokenizer(source) {
      const found = NOTE.exec(source);
      const number = found && this.lexer.tokens.links[`^${found[1].toLowerCase()}`]?.note;
      return number ? { type: 'note', raw: found[0], number } : undefined;
    },
  }],
});

/**
 * Returns a fragment with the formatted `text`. `context`: `session` (whose workspace relative links refer to), `base` (a folder
 * in it) and `definitions` (addresses that the text defines elsewhere).
 */
export function inline(text, context) {
  const safe = visible(text);
  const fragment = document.createDocumentFragment();
  if (!SIGN.test(safe)) {
    fragment.append(safe);
    return fragment;
  }
  const box = inert.createElement('span');
  build(box, read(safe, context), context, 0);
  purify.sanitize(box);
  for (const picture of box.querySelectorAll('img')) frame(picture);
  for (const reference of box.querySelectorAll('.md-ref')) press(reference);
  fragment.append(...box.childNodes);
  return fragment;
}

function read(text, context) {
  const plain = [{ type: 'plain', text }];
  const pictures = text.includes('](data:image/');
  if ((text.length > LONGEST && !pictures) || signs(text) > MOST_SIGNS) return plain;
  try {
    const lexer = new Lexer(marked.defaults);
    if (context.definitions) lexer.tokens.links = context.definitions;
    return lexer.inlineTokens(text);
  } catch {
    // If marked cannot parse a text, it is shown unformatted.
    return plain;
  }
}

function signs(text) {
  let found = 0;
  for (let at = 0; at < text.length; at += 1) if ('*_~[]<`$\\&'.includes(text[at])) found += 1;
  return found;
}

const WRAPS = { strong: 'strong', em: 'em', del: 'del' };

function build(parent, tokens, context, depth) {
  for (const token of tokens) {
    if (token.type === 'text' || token.type === 'escape') parent.append(entities(token.text));
    else if (token.type === 'plain') parent.append(token.text);
    else if (token.type === 'br') parent.append(inert.createElement('br'));
    else if (token.type === 'codespan') parent.append(element('code', token.text));
    else if (token.type === 'formula') parent.append(mathematics(token.text));
    else if (token.type === 'note') parent.append(element('sup', String(token.number), 'md-ref'));
    else if (token.type === 'link') link(parent, token, context, depth);
    else if (token.type === 'image') picture(parent, token, context);
    else if (WRAPS[token.type] && depth < DEEPEST) build(parent.appendChild(inert.createElement(WRAPS[token.type])), token.tokens, context, depth + 1);
    else parent.append(token.raw);
  }
}

function element(name, text, kind) {
  const made = inert.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

/** Converts TeX to MathML, once that code is loaded. */
let convert = null;
let coming = null;

/** A formula, with its source as tooltip. `display`: on its own line. */
function mathematics(tex, display = false) {
  const span = element('span', tex.trim(), 'md-math');
  span.title = tex.trim();
  if (convert) write(span, display);
  else coming ??= fetchMath();
  return span;
}

/** A display formula, cleaned like inline text. */
export function displayed(tex) {
  const span = mathematics(tex, true);
  purify.sanitize(span);
  return document.adoptNode(span);
}

function write(span, display) {
  const made = convert(inert, span.title, display);
  if (made) span.replaceChildren(made);
}

/** Loads the code for formulas; until then, they are shown as source. */
async function fetchMath() {
  try {
    ({ formula: convert } = await import('./math.js'));
  } catch {
    coming = null;
    return;
  }
  for (const shown of document.querySelectorAll('.md-math')) {
    const span = inert.importNode(shown, true);
    write(span, Boolean(shown.closest('.md-display')));
    purify.sanitize(span);
    shown.replaceChildren(...span.childNodes);
  }
}

function link(parent, token, context, depth) {
  const to = address(token.href, context);
  if (!to) {
    // The page does not follow this address, so it is shown as text.
    build(parent, token.tokens, context, depth + 1);
    if (token.text !== token.href) parent.append(' (', element('code', token.href), ')');
    return;
  }
  const anchor = inert.createElement('a');
  // A file of the workspace that the page can show opens beside the chat.
  const leads = to.file && viewOf(to.file) ? routed('s', context.session, 'f', to.file) : to.href;
  anchor.setAttribute('href', leads);
  if (!leads.startsWith('#')) {
    anchor.setAttribute('target', '_blank');
    anchor.setAttribute('rel', 'noopener noreferrer nofollow ugc');
  }
  const text = anchor.appendChild(inert.createElement('bdi'));
  build(text, token.tokens.some(({ type }) => type === 'link') ? [{ type: 'plain', text: token.text }] : token.tokens, context, depth + 1);
  if (!text.textContent.trim() && !text.querySelector('img')) text.append(to.host ?? to.href);
  parent.append(anchor);
  if (to.host && pretends(text.textContent, to)) parent.append(' ', element('span', `(${to.host})`, 'md-host'));
}

/** Returns whether a text looks like an address that differs from the link's destination. */
function pretends(text, to) {
  const said = text.normalize('NFKC').replace(/\p{Cf}/gu, '').toLowerCase();
  if (/^mailto:/i.test(to.href)) return (said.match(/[^@\s]+@[^@\s]+/g) ?? []).some((name) => name !== to.host.toLowerCase());
  const hosts = [to.host, to.host.replace(/^www\./, ''), to.host.replace(/:\d+$/, '')];
  const named = (said.match(/(?:[\p{L}\p{N}-]+\.)+[\p{L}][\p{L}\p{N}-]+/gu) ?? []);
  // For a complete address, only the host counts; the path may contain any name.
  const [first] = named;
  if (/^\s*[a-z]+:\/\/|^\s*www\./.test(said)) return to.odd || !hosts.includes(first);
  return named.some((name) => !hosts.includes(name));
}

/**
 * Resolves a link from a model: `{href, host}` for external addresses, `{href, path}` for the daemon's (with `file` for a file of
 * the session's workspace), or null for links that the page does not follow (`javascript:` and everything else that is not known
 * to be harmless).
 */
export function address(given, { session, base = '' }) {
  const href = given.trim().replace(/[\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]+/g, (found) => (/^ +$/.test(found) ? '%20' : ''));
  if (!href) return null;
  if (href.startsWith('#')) return href.startsWith('#/') ? { href } : null;
  if (/^mailto:[^?]/i.test(href)) return { href, host: decode(href.slice(7).split('?')[0]) };
  if (/^(?:https?:)?\/\//i.test(href)) {
    try {
      const url = new URL(href, 'https://x');
      const odd = Boolean(url.username || url.password) || /(^|\.)xn--/.test(url.host);
      return { href: url.href, host: url.host, odd };
    } catch {
      return null;
    }
  }
  if (/^[a-z][a-z0-9+.-]*:/i.test(href) || href.includes('\\')) return null;
  if (/^\/pub\/\w+$/.test(href)) return { href, path: href };
  if (/^\/sessions\/[^/]+\/files\/[^?#]+$/.test(href) && !/(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(href)) return { href, path: decode(href) };
  return session ? workspace(href, session, base) : null;
}

/** Resolves `pub/x.png`, `./x.png` and `/work/pub/x.png` to files of the session's workspace. */
function workspace(href, session, base) {
  const path = decode(href.split(/[?#]/)[0]);
  if (path.startsWith('/') && !path.startsWith('/work/')) return null;
  const parts = [];
  for (const part of (path.startsWith('/work/') ? path.slice(6) : `${base}/${path}`).split('/')) {
    if (part === '..' && !parts.length) return null;
    if (part === '..') parts.pop();
    else if (part && part !== '.') parts.push(part);
  }
  return parts.length ? { href: fileUrl(session, parts.join('/')), path: parts.join('/'), file: parts.join('/') } : null;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function picture(parent, token, context) {
  const alt = entities(token.text ?? '').trim();
  const data = DATA_PICTURE.test(token.href);
  const to = data ? { href: token.href, path: '' } : address(token.href, context);
  if (!to) {
    parent.append(alt || 'picture', ' (', element('code', token.href.slice(0, 200)), ')');
  } else if (to.path === undefined) {
    // The page never loads from other machines; the reader may follow the link.
    link(parent, { href: token.href, text: '', tokens: [{ type: 'plain', text: alt ? `${alt} (picture at ${to.host})` : `Picture at ${to.host}` }] }, context, 0);
  } else {
    const image = inert.createElement('img');
    image.setAttribute('alt', alt || to.path.split('/').pop() || 'Picture');
    image.setAttribute('loading', 'lazy');
    image.setAttribute('decoding', 'async');
    image.setAttribute('src', to.href);
    parent.append(image);
  }
}

/** Opens a picture in the lightbox by pointer and by keyboard; inside of a link, the link applies. */
function frame(image) {
  if (image.closest('a')) return;
  const button = inert.createElement('button');
  button.type = 'button';
  button.className = 'md-picture';
  button.setAttribute('aria-label', `Open picture: ${image.alt}`);
  image.replaceWith(button);
  button.append(image);
}

/** Makes a footnote reference work by pointer and by keyboard. */
function press(reference) {
  const button = inert.createElement('button');
  button.type = 'button';
  button.dataset.note = reference.textContent;
  button.setAttribute('aria-label', `Footnote ${reference.textContent}`);
  button.append(...reference.childNodes);
  reference.append(button);
}

/** Makes characters visible that change the direction of surrounding text. */
export const visible = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (sign) => `⟦U+${sign.charCodeAt(0).toString(16).toUpperCase()}⟧`);

const NAMED = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', reg: '®', trade: '™', mdash: '—', ndash: '–', hellip: '…', laquo: '«', raquo: '»',
  ldquo: '“', rdquo: '”', lsquo: '‘', rsquo: '’', bull: '•', middot: '·', times: '×', divide: '÷', deg: '°', plusmn: '±', rarr: '→', larr: '←', le: '≤', ge: '≥', ne: '≠', euro: '€', pound: '£', sect: '§', para: '¶', shy: '',
};

/** Decodes `&amp;` and other named entities; marked has decoded the numeric ones. */
const entities = (text) => visible(text.includes('&') ? text.replace(/&(\w+);/g, (whole, name) => (Object.hasOwn(NAMED, name) ? NAMED[name] : whole)) : text);
