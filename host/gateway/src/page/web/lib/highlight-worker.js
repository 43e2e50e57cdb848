// Syntax highlighting in a worker; see highlight.js. It has no access to the page, and its results never become markup.

import hljs from '../vendor/highlight.js';

/** Kinds that have a colour, by the class names of highlight.js. */
const KINDS = {
  keyword: 'keyword', operator: 'keyword', 'selector-tag': 'keyword', name: 'keyword', tag: 'tag', built_in: 'type', type: 'type', class: 'type', 'title.class': 'type',
  string: 'string', regexp: 'string', char: 'string', 'char.escape': 'number', symbol: 'number', number: 'number', literal: 'number', bullet: 'number', link: 'string',
  comment: 'comment', quote: 'comment', doctag: 'keyword', title: 'title', 'title.function': 'title', section: 'title', attr: 'title', attribute: 'title', property: 'title',
  variable: 'variable', 'variable.language': 'keyword', 'template-variable': 'variable', params: '', subst: '', meta: 'comment', 'selector-class': 'type', 'selector-id': 'type',
  addition: 'added', deletion: 'gone', strong: 'title', emphasis: 'string', code: 'string',
};

const NAMES = { sh: 'bash', zsh: 'bash', console: 'shell', jsonc: 'json', json5: 'json', toml: 'ini', htm: 'xml', vue: 'xml', svelte: 'xml', wat: 'wasm', patch: 'diff' };

// The time limit starts here, because a slow machine takes a while to load the library.
postMessage({});

onmessage = ({ data: { id, source, language } }) => {
  const name = NAMES[language] ?? language;
  let words = null;
  try {
    if (hljs.getLanguage(name)) words = flat(hljs.highlight(source, { language: name, ignoreIllegals: true })._emitter.rootNode);
  } catch {
    // Code that cannot be parsed stays plain.
  }
  postMessage({ id, words });
};

/** Flattens the tree to a list of alternating texts and kinds; merges neighbours of the same kind. */
function flat(root) {
  const words = [];
  const walk = (node, kind) => {
    if (typeof node === 'string') {
      if (words.length && words.at(-1) === kind) words[words.length - 2] += node;
      else words.push(node, kind);
      return;
    }
    const scope = node.scope ?? '';
    const own = KINDS[scope] ?? KINDS[scope.split('.')[0]] ?? (scope.startsWith('language:') ? '' : kind);
    for (const child of node.children) walk(child, own);
  };
  walk(root, '');
  return words;
}
