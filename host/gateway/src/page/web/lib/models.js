// The model of a session: the current one, and a choice of the configured ones.

import { html, store, useEffect, useStore } from './preact.js';
import { get, isAdmin, me, post } from './api.js';
import { on } from './events.js';
import { style } from './modules.js';
import { announce, Menu } from './ui.js';

/** The response of `GET /models`: the available models, and the default. Null until it is known; empty if it cannot be loaded. */
export const models = store(null);

const NONE = { items: [], default: '' };

/** Milliseconds after which it is loaded again when a session is opened, because models can be configured in the meantime. */
const FRESH = 10_000;

let asked = 0;

/** Loads the models. The frame calls this while the chat's module is loading; further calls share that request. */
export async function loadModels() {
  if (Date.now() - asked < FRESH) return;
  asked = Date.now();
  try {
    models.set(await get('/models'));
  } catch {
    asked = 0;
    models.set((old) => old ?? NONE);
  }
}

on('gap', () => { asked = 0; });
me.watch((who) => {
  if (who) return;
  asked = 0;
  models.set(null);
});

/** The dialog for connecting a model, once it was opened. */
const connect = store(null);

/** `chat`: the chat whose menu opened the dialog, with its own model, and `use`, which changes that. */
export async function showConnect(chat) {
  const [{ Connect }] = await Promise.all([import('./connect.js'), style('screens/connect.css')]);
  connect.set({ Connect, chat });
}

export const openConnect = () => showConnect(null);

/** Reloads the models after a change. */
export async function refreshModels() {
  asked = 0;
  await loadModels();
}

export function ConnectDialog() {
  const opened = useStore(connect);
  return opened && html`<${opened.Connect} chat=${opened.chat} onClose=${() => connect.set(null)} />`;
}

/** A menu of the session's available models; `model` is the current one. */
export function ModelMenu({ session, model, onChange }) {
  const told = useStore(models);
  useEffect(() => void loadModels(), []);
  const shown = model ?? told?.default;
  const use = async (name) => {
    const { answer } = await post('/msg', { session, text: `/model ${name}` });
    announce(answer);
    onChange();
  };
  const names = [...new Set([...(told?.items ?? []).map((one) => one.model), shown])].filter(Boolean);
  const items = [
    ...names.map((name) => ({ label: name, icon: name === shown ? 'check' : 'chat', checked: name === shown, run: () => use(name) })),
    isAdmin() && { label: names.some((name) => name.includes(':')) ? 'More models…' : 'Connect a model…', icon: 'plus', run: () => showConnect({ model, use }) },
  ].filter(Boolean);
  return html`<div class="chat-model">${shown && html`<${Menu} label="Model" text=${shown} icon="down" items=${items} kind="quiet small" />`}</div>`;
}
