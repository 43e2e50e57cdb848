// The reason why a run failed, with a button for the next step, which the daemon determines.

import { html } from './preact.js';
import { isAdmin } from './api.js';
import { openConnect } from './models.js';
import { go, href } from './router.js';
import { Sentence } from './said.js';
import { freshName } from './sessions.js';
import { Button, Icon, copyText, toast } from './ui.js';

/** Returns the button of a remedy: its label, and its action or address. */
function stepOf({ action, setting }, run) {
  switch (action) {
    case 'connect_model': return isAdmin() && { label: 'Connect a model', icon: 'link', run: openConnect };
    case 'change_setting': return { label: `Copy ${setting}`, icon: 'copy', run: async () => {
      await copyText(setting);
      toast('Setting copied', 'good');
    } };
    case 'new_chat': return { label: 'New chat', icon: 'plus', run: () => go('s', freshName()) };
    case 'show_rules': return { label: 'Show the decision', icon: 'trace', href: href('run', run) };
    default: return null;
  }
}

/** `children` is the run's text. */
export function TroubleCard({ trouble, run, acts, children }) {
  const step = stepOf(trouble.remedy, run);
  return html`<div class="trouble-card" role="group" aria-label=${trouble.title}>
    <p class="strong"><${Icon} name="alert" /><span>${trouble.title}</span></p>
    ${children}
    <p><${Sentence} text=${trouble.advice} /></p>
    <footer>
      ${step && (step.href ? html`<a class="button primary" href=${step.href}><${Icon} name=${step.icon} /><span>${step.label}</span></a>`
        : html`<${Button} kind="primary" icon=${step.icon} onClick=${step.run}>${step.label}<//>`)}
      <${Button} kind=${step ? '' : 'primary'} icon="retry" onClick=${() => acts.again(run)}>Try again<//></footer>
  </div>`;
}
