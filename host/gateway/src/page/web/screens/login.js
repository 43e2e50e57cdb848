// The login screen, the only one for users who are not logged in.

import { html, useEffect, useRef, useState } from '../lib/preact.js';
import { logIn } from '../lib/api.js';
import { Sentence } from '../lib/said.js';
import { Icon } from '../lib/ui.js';

/** `trouble` is the reason why a one-time link failed. */
export function Login({ trouble }) {
  const [error, setError] = useState(trouble);
  const [token, setToken] = useState('');
  const [under, setUnder] = useState(false);
  const field = useRef(null);
  useEffect(() => {
    // Hides the title of the previous screen.
    document.title = 'kiso';
    field.current.focus();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    setUnder(true);
    setError(null);
    try {
      await logIn({ token: token.trim() });
    } catch (refused) {
      setError(refused);
      setUnder(false);
      field.current.focus();
    }
  };
  return html`<main class="login">
    <form onSubmit=${submit}>
      <h1><${Logo} /> kiso</h1>
      <p>Run <code>kiso open</code> on your server, or paste a token.</p>
      <input class="unseen" type="text" name="username" autocomplete="username" value="kiso" readonly tabindex="-1" aria-hidden="true" />
      <label for="token">Token</label>
      <input id="token" ref=${field} type="password" autocomplete="current-password" spellcheck=${false} required placeholder="kiso_…"
        value=${token} onInput=${(event) => setToken(event.target.value)} aria-describedby="token-help" aria-invalid=${error ? 'true' : undefined} />
      <p id="token-help" class="muted"><code>kiso token add NAME</code> prints a token.</p>
      ${error && html`<p class="wrong" role="alert"><${Icon} name="alert" /><span><${Sentence} text=${error.message} />${error.hint && html`. <${Sentence} text=${error.hint} />.`}</span></p>`}
      <button class="button primary" disabled=${under || !token.trim()} aria-busy=${under ? 'true' : undefined}><span>Log in</span></button>
    </form>
  </main>`;
}

export const Logo = () => html`<svg class="logo" width="26" height="26" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" />
  <path d="M7 22h18M10 22v-6h12v6M13 16v-6h6v6" /></svg>`;
