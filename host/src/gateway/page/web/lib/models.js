// The model of a session: which one answers, and a choice of those that are configured.

import { html, store, useEffect, useState, useStore } from './preact.js';
import { get, isAdmin, post } from './api.js';
import { announce, Menu } from './ui.js';

/** The dialog that leads to a model, once it was asked for. */
const connect = store(null);

export async function openConnect() {
  const { Connect } = await import('./connect.js');
  connect.set({ Connect });
}

export function ConnectDialog() {
  const opened = useStore(connect);
  return opened && html`<${opened.Connect} onClose=${() => connect.set(null)} />`;
}

/** A menu of the models that a session can have; `model` is the one that answers now. */
export function ModelMenu({ session, model, onChange }) {
  const [told, set] = useState(null);
  const load = () => get('/models').then(set, () => {});
  useEffect(() => void load(), []);
  const shown = model ?? told?.default;
  const choose = (name) => async () => {
    const { answer } = await post('/msg', { session, text: `/model ${name}` });
    announce(answer);
    onChange();
  };
  const names = [...new Set([...(told?.items ?? []).map((one) => one.model), shown])].filter(Boolean);
  const items = [
    ...names.map((name) => ({ label: name, icon: name === shown ? 'check' : 'chat', checked: name === shown, run: choose(name) })),
    isAdmin() && { label: 'Connect a model…', icon: 'plus', run: openConnect },
  ].filter(Boolean);
  return html`<div class="chat-model">${shown && html`<${Menu} label="Model" text=${shown} icon="down" items=${items} kind="quiet small" />`}</div>`;
}
