// The model of a session: which one answers, and a choice of those that are configured.

import { html, store, useEffect, useStore } from './preact.js';
import { get, isAdmin, me, post } from './api.js';
import { on } from './events.js';
import { style } from './modules.js';
import { announce, Menu } from './ui.js';

/** What `GET /models` says: the models that there are, and the default. Null until it is known; empty where it cannot be. */
export const models = store(null);

const NONE = { items: [], default: '' };

/** Milliseconds after which it is asked again when a session is opened: models are configured while a page is open. */
const FRESH = 10_000;

let asked = 0;

/** The frame asks for it while the conversation's module still comes; who needs it asks again, which is then the same question. */
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

/** The dialog that leads to a model, once it was asked for. */
const connect = store(null);

/** `chat`: the chat whose menu led here, with the model that it has chosen itself, and `use`, which changes that. */
export async function showConnect(chat) {
  const [{ Connect }] = await Promise.all([import('./connect.js'), style('screens/connect.css')]);
  connect.set({ Connect, chat });
}

export const openConnect = () => showConnect(null);

/** Asks for the models once more, because somebody changed them. */
export async function refreshModels() {
  asked = 0;
  await loadModels();
}

export function ConnectDialog() {
  const opened = useStore(connect);
  return opened && html`<${opened.Connect} chat=${opened.chat} onClose=${() => connect.set(null)} />`;
}

/** A menu of the models that a session can have; `model` is the one that answers now. */
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
