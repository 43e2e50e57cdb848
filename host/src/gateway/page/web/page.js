// Who opens a link of `kiso open` is logged in by the code in it; everybody sees who they are.
const code = new URLSearchParams(location.hash.slice(1)).get('code');
history.replaceState(null, '', '/');
const headers = { 'x-kiso-page': '1' };
const answer = code
  ? await fetch('/login', { method: 'POST', headers, body: JSON.stringify({ code }) })
  : await fetch('/me', { headers });
document.body.textContent = await answer.text();
