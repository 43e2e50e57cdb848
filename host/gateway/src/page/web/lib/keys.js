// The keyboard shortcuts of the page, in a dialog; loaded on demand.

import { html } from './preact.js';
import { Button, Dialog } from './ui.js';

const MAC = /^Mac|^iP/.test(navigator.platform);
const CONTROL = MAC ? '⌘' : 'Ctrl';

const KEYS = [
  ['Anywhere', [
    [[CONTROL, 'Shift', 'O'], 'Begin a new chat'],
    [[CONTROL, 'K'], 'Search chats and messages'],
    [['?'], 'Show this list'],
    [['Esc'], 'Close a dialog, a menu, a file or the search'],
  ]],
  ['Writing', [
    [['Enter'], 'Send'],
    [['Shift', 'Enter'], 'Begin a new line'],
    [['↑'], 'Earlier messages, in an empty field'],
    [['/'], 'Commands'],
    [['!'], 'Pills'],
    [['@'], 'Skills'],
    [['#'], 'Categories of tools'],
  ]],
  ['A chat', [
    [['Ctrl', '.'], 'Stop what kiso is doing'],
  ]],
  ['The list of chats', [
    [['↑', '↓'], 'Move between chats'],
    [['→'], 'Open the menu of a chat'],
    [['F2'], 'Rename'],
  ]],
];

export function Keys({ onClose }) {
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}>
    <div class="keys">${KEYS.map(([group, keys]) => html`<section key=${group}><h3>${group}</h3>
      <dl>${keys.map(([combination, what]) => html`<div key=${what}><dt>${combination.map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt><dd>${what}</dd></div>`)}</dl></section>`)}</div>
    <footer><${Button} onClick=${onClose}>Close<//></footer><//>`;
}
