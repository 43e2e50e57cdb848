// A form generated from a JSON Schema: converts the input ("raw": texts, checkboxes, rows) to JSON.
//
// The raw value of an object has a member for each property; that of a list is a list; that of a checkbox is true, false or '';
// all others are texts. Empty values are left out of the JSON, so that the skill's default applies.

import { html, useRef } from './preact.js';
import { Button, Icon, Said } from './ui.js';

/** Length in characters at which a text gets a multi-line field. */
const LONG = 500;
/** Number of values at which a list of choices is too long. */
const MAX_CHOICES = 200;
/** Bounds beyond this are those of the type, so they are not shown. */
const NO_BOUND = 1e9;
/** Limits on rows above this number are shown only when they are reached. */
const MANY = 20;

/** Returns the field for a schema: `{kind, schema, items?, choices?}`. `depth` is the number of enclosing objects. */
export function fieldOf(given, depth = 0) {
  const schema = withoutNull(given ?? {});
  const choices = Array.isArray(schema.enum) ? schema.enum.filter((one) => one !== null) : null;
  if (choices && choices.length <= MAX_CHOICES && choices.every(isPlain)) return { kind: 'choice', schema, choices };
  const composed = ['oneOf', 'anyOf', 'allOf', 'not', '$ref', 'if'].some((word) => word in schema);
  if (composed) return { kind: 'json', schema };
  switch (schema.type) {
    case 'string': {
      const long = !schema.format && !schema.pattern && (schema.maxLength ?? Infinity) > LONG;
      return { kind: schema.format === 'file' ? 'file' : long ? 'long' : 'text', schema };
    }
    case 'integer': case 'number': return { kind: 'number', schema };
    case 'boolean': return { kind: 'tick', schema };
    case 'array': {
      const items = schema.prefixItems ? null : fieldOf(schema.items, depth + 1);
      if (items?.kind === 'choice' && schema.uniqueItems) return { kind: 'ticks', schema, choices: items.choices };
      return ['text', 'long', 'file', 'number', 'choice'].includes(items?.kind) ? { kind: 'list', schema, items } : { kind: 'json', schema };
    }
    case 'object': return schema.properties && depth < 2 ? { kind: 'object', schema } : { kind: 'json', schema };
    default: return { kind: 'json', schema };
  }
}

const isPlain = (value) => ['string', 'number', 'boolean'].includes(typeof value);

/** Removes null from the types of a schema: an optional value is left out instead. */
function withoutNull(schema) {
  const either = schema.anyOf ?? schema.oneOf;
  const rest = either?.filter((one) => one.type !== 'null');
  if (rest?.length === 1 && rest.length < either.length) {
    return { ...rest[0], description: schema.description ?? rest[0].description, default: schema.default };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== 'null');
    return types.length === 1 ? { ...schema, type: types[0] } : { ...schema, type: undefined };
  }
  return schema;
}

/** Returns the raw value of an empty form. */
export function emptyOf(field, depth = 0) {
  switch (field.kind) {
    case 'object': return Object.fromEntries(properties(field).map(([name, schema]) => [name, emptyOf(fieldOf(schema, depth + 1), depth + 1)]));
    case 'list': case 'ticks': return [];
    case 'tick': return field.schema.default ?? '';
    default: return '';
  }
}

const properties = (field) => Object.entries(field.schema.properties ?? {});

/** Returns whether nothing was typed. */
function isBlank(raw) {
  if (raw && typeof raw === 'object') return Object.values(raw).every(isBlank);
  return raw === '' || raw === undefined;
}

/** Returns the JSON of the input, or `undefined` if it is left out. Errors are added to `errors`: path to text. */
export function valueOf(field, raw, required, path, errors, depth = 0) {
  const { kind, schema } = field;
  const wrong = (words) => {
    errors.set(path, words);
    return undefined;
  };
  if (kind === 'object') {
    if (isBlank(raw) && !required) return undefined;
    const made = {};
    for (const [name, of] of properties(field)) {
      const value = valueOf(fieldOf(of, depth + 1), raw?.[name], (schema.required ?? []).includes(name), `${path}.${name}`, errors, depth + 1);
      if (value !== undefined) made[name] = value;
    }
    return made;
  }
  if (kind === 'tick') {
    if (raw === '' || raw === undefined) return required ? false : undefined;
    return raw === schema.default ? undefined : raw;
  }
  if (kind === 'list' || kind === 'ticks') {
    const all = kind === 'ticks' ? field.choices.filter((_, at) => raw.includes(at))
      : raw.map((one, at) => valueOf(field.items, one, false, `${path}.${at}`, errors)).filter((one) => one !== undefined);
    if (!all.length && !required && !(schema.minItems > 0 && raw.length)) return undefined;
    if (all.length < (schema.minItems ?? 0)) return wrong(`Add at least ${schema.minItems}`);
    if (!all.length && required && schema.minItems === undefined) return all;
    if (all.length > (schema.maxItems ?? Infinity)) return wrong(`At most ${schema.maxItems} are allowed`);
    if (schema.uniqueItems && new Set(all.map((one) => JSON.stringify(one))).size < all.length) return wrong('Each value may appear only once');
    return all;
  }
  const text = String(raw ?? '');
  if (kind === 'choice') return text === '' ? required ? wrong('Choose one') : undefined : field.choices[Number(text)];
  if (text === '' || (kind !== 'text' && kind !== 'long' && !text.trim())) return required ? wrong('Required') : undefined;
  if (kind === 'json') {
    try {
      return JSON.parse(text);
    } catch (error) {
      return wrong(`Not valid JSON: ${error.message}`);
    }
  }
  const found = kind === 'number' ? wrongNumber(schema, text.trim()) : wrongText(schema, text);
  if (found) return wrong(found);
  return kind === 'number' ? Number(text) : text;
}

function wrongNumber(schema, text) {
  const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
  if (!Number.isFinite(number)) return 'Enter a number';
  if (schema.type === 'integer' && !Number.isInteger(number)) return 'Enter a whole number';
  if (schema.type === 'integer' && !Number.isSafeInteger(number)) return 'This number is too large';
  if (number < schema.minimum) return `Enter ${schema.minimum} or more`;
  if (number > schema.maximum) return `Enter ${schema.maximum} or less`;
  if (number <= schema.exclusiveMinimum) return `Enter more than ${schema.exclusiveMinimum}`;
  if (number >= schema.exclusiveMaximum) return `Enter less than ${schema.exclusiveMaximum}`;
  return null;
}

function wrongText(schema, text) {
  const length = [...text].length;
  if (length < (schema.minLength ?? 0)) return `Enter at least ${schema.minLength} characters`;
  if (length > (schema.maxLength ?? Infinity)) return `Enter at most ${schema.maxLength} characters (now ${length})`;
  // The daemon checks patterns: their dialect differs, and a stranger's pattern may block the browser.
  return null;
}

/**
 * Parses the daemon's error about arguments, "NAME VERSION: a: …; b[0]: …", as path to text; null if it does not refer to a
 * field.
 */
export function wrongBy(message, root, path) {
  const errors = new Map();
  let last = null;
  for (const piece of message.replace(/^\S+ \S+: /, '').split('; ')) {
    const [, where, words] = /^([\w-]+(?:\.[\w-]+|\[\d+\])*): ([^]*)$/.exec(piece) ?? [];
    const at = where && placeOf(where, root, path);
    if (at) {
      errors.set(at, words);
      last = at;
    } else if (last) {
      errors.set(last, `${errors.get(last)}; ${piece}`);
    } else {
      return null;
    }
  }
  return errors;
}

/** Returns the path of the field that contains "a.b[0]". */
function placeOf(where, root, path) {
  let [field, at, depth] = [root, path, 0];
  for (const step of where.match(/[\w-]+/g)) {
    depth += 1;
    if (field.kind === 'object' && Object.hasOwn(field.schema.properties, step)) field = fieldOf(field.schema.properties[step], depth);
    else if (field.kind === 'list' && /^\d+$/.test(step)) field = field.items;
    else break;
    at = `${at}.${step}`;
  }
  return at === path ? null : at;
}

/** The fields of an object. `onChange` receives its new raw value; `files` are suggestions for file fields. */
export function Fields({ field, raw, onChange, errors, path, files, depth = 0 }) {
  const required = new Set(field.schema.required ?? []);
  // Required fields come first.
  const all = properties(field).sort(([a], [b]) => required.has(b) - required.has(a));
  return all.map(([name, schema]) => html`<${Field} key=${name} name=${name} field=${fieldOf(schema, depth + 1)} required=${required.has(name)}
    raw=${raw?.[name] ?? ''}
    path=${`${path}.${name}`} errors=${errors} files=${files} depth=${depth + 1} onChange=${(value) => onChange({ ...raw, [name]: value })} />`);
}

function Field(props) {
  const { name, field, required, path, errors, depth, raw, onChange, files } = props;
  const help = words(field);
  const about = html`${help && html`<p class="muted" id=${`${path}-help`}><${Said}>${help}<//></p>`}<${Wrong} path=${path} errors=${errors} />`;
  const need = required && html`<span class="form-need">required</span>`;
  if (field.kind === 'object') {
    return html`<fieldset class="form-group"><legend><${Said}>${name}<//>${need}</legend>${about}
      <${Fields} field=${field} raw=${raw} onChange=${onChange} errors=${errors} path=${path} files=${files} depth=${depth} /></fieldset>`;
  }
  if (field.kind === 'ticks') return html`<${Ticks} ...${props} need=${need} about=${about} />`;
  if (field.kind === 'list') return html`<${List} ...${props} need=${need} about=${about} />`;
  if (field.kind === 'tick' && (required || field.schema.default !== undefined)) {
    return html`<div class="field"><label class="checked"><input type="checkbox" id=${path} checked=${raw === true}
      aria-describedby=${described(field, path, errors)} onChange=${(event) => onChange(event.target.checked)} /><${Said}>${name}<//></label>${about}</div>`;
  }
  return html`<div class="field"><span class="form-name"><label for=${path}><${Said}>${name}<//></label>${need}</span>
    <${Control} ...${props} id=${path} />${about}</div>`;
}

const Wrong = ({ path, errors }) => errors.get(path) && html`<p class="wrong" id=${`${path}-wrong`}><${Icon} name="alert" size=${16} />
  <${Said}>${errors.get(path)}<//></p>`;

/** Describes a field with its bounds. */
function words({ kind, schema }) {
  const bounds = [];
  if (kind === 'number') {
    const [least, most] = [schema.minimum, schema.maximum].map((bound) => (Math.abs(bound) < NO_BOUND ? bound : null));
    if (least != null && most != null) bounds.push(`${least} to ${most}`);
    else if (least != null) bounds.push(`at least ${least}`);
    else if (most != null) bounds.push(`at most ${most}`);
  }
  if ((kind === 'list' || kind === 'ticks') && schema.maxItems <= MANY) bounds.push(`at most ${schema.maxItems}`);
  if (kind === 'json') bounds.push('as JSON');
  return [schema.description, ...bounds].filter(Boolean).join(' · ');
}

const shown = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Returns the ids of a field's help text and error. Rows of a list have no help text. */
function described(field, path, errors) {
  return [field && words(field) && `${path}-help`, errors.get(path) && `${path}-wrong`].filter(Boolean).join(' ') || undefined;
}

/** One control. `label` is its name if there is no label element. */
function Control({ id, field, required, raw, onChange, path, errors, files, label, onKeyDown }) {
  const { kind, schema } = field;
  const common = {
    id, 'aria-label': label, 'aria-required': required ? 'true' : undefined, 'aria-invalid': errors.get(path) ? 'true' : undefined,
    'aria-describedby': described(label ? null : field, path, errors), onInput: (event) => onChange(event.target.value), onKeyDown,
  };
  const left = schema.default !== undefined ? `${shown(schema.default)} when left empty` : '';
  if (kind === 'choice' || kind === 'tick') {
    const choices = kind === 'tick' ? [[true, 'yes'], [false, 'no']] : field.choices.map((one, at) => [at, shown(one)]);
    const none = schema.default !== undefined ? `${shown(schema.default)} (the default)` : required ? 'Choose…' : 'not given';
    const set = (event) => onChange(kind === 'choice' ? event.target.value : event.target.value === '' ? '' : event.target.value === 'true');
    return html`<select ...${common} onInput=${set} value=${String(raw)}>
      <option value="" selected=${raw === ''}>${none}</option>
      ${choices.map(([value, text]) => html`<option key=${value} value=${String(value)} selected=${String(raw) === String(value)}>${text}
        </option>`)}</select>`;
  }
  if (kind === 'long' || kind === 'json') {
    return html`<textarea ...${common} class=${`form-long ${kind === 'json' ? 'mono' : ''}`} rows=${kind === 'json' ? 3 : 1}
      spellcheck=${kind === 'long'} placeholder=${left} value=${raw}></textarea>`;
  }
  return html`<input ...${common} type="text" inputmode=${kind === 'number' ? 'decimal' : schema.format === 'url' ? 'url' : undefined}
    autocomplete="off" spellcheck=${kind === 'text' && !schema.format} placeholder=${left}
    list=${kind === 'file' && files.length ? 'form-files' : undefined} value=${raw} />`;
}

/** Checkboxes for a list of choices. */
function Ticks({ name, field, raw, path, errors, onChange, need, about }) {
  const toggle = (at, yes) => onChange(yes ? [...raw, at] : raw.filter((one) => one !== at));
  return html`<fieldset class="form-list" aria-describedby=${described(field, path, errors)}>
    <legend><${Said}>${name}<//>${need}</legend>
    <div class="form-ticks">${field.choices.map((one, at) => html`<label key=${at} class="checked">
      <input type="checkbox" checked=${raw.includes(at)} aria-invalid=${errors.get(path) ? 'true' : undefined}
        onChange=${(event) => toggle(at, event.target.checked)} /><${Said}>${shown(one)}<//></label>`)}</div>${about}</fieldset>`;
}

/** Rows that can be added and removed. */
function List({ name, field, raw, path, errors, files, onChange, need, about }) {
  const root = useRef(null);
  // There is always one row to type into; an empty row is left out.
  const rows = raw.length ? raw : [''];
  const full = rows.length >= (field.schema.maxItems ?? Infinity);
  const look = (at) => setTimeout(() => root.current?.querySelectorAll('.form-row > :first-child')[at]?.focus(), 0);
  const set = (at, value) => onChange(rows.map((old, of) => (of === at ? value : old)));
  const add = () => {
    onChange([...rows, '']);
    look(rows.length);
  };
  const remove = (at) => {
    onChange(rows.filter((_, one) => one !== at));
    look(Math.max(0, at - 1));
  };
  const keys = (event) => {
    // Enter adds the next row instead of submitting.
    if (event.key === 'Enter' && field.items.kind !== 'long') {
      event.preventDefault();
      if (!full) add();
    }
  };
  return html`<fieldset class="form-list" ref=${root} aria-describedby=${described(field, path, errors)}>
    <legend><${Said}>${name}<//>${need}</legend>
    ${rows.map((one, at) => html`<div key=${at}><div class="form-row">
      <${Control} id=${`${path}.${at}`} label=${`${name} ${at + 1}`} field=${field.items} raw=${one} path=${`${path}.${at}`}
        errors=${errors} files=${files} onKeyDown=${keys} onChange=${(value) => set(at, value)} />
      ${rows.length > 1 && html`<${Button} kind="quiet" icon="close" label=${`Remove ${name} ${at + 1}`} onClick=${() => remove(at)} />`}
      ${at === rows.length - 1 && html`<${Button} kind="quiet" icon="plus" label=${`Add to ${name}`} disabled=${full} onClick=${add} />`}</div>
      <${Wrong} path=${`${path}.${at}`} errors=${errors} /></div>`)}${about}</fieldset>`;
}
