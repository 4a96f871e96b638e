// Who asks is not known: a key of the shop is asked for.
import {html, useState} from '../vendor/preact.js';
import {live, logIn} from '../lib/live.js';
import {useAction} from '../parts/action.js';
import {Title} from '../parts/frame.js';
import {Refusal} from '../parts/notice.js';

export function Login() {
  const [key, type] = useState('');
  const action = useAction(() => logIn(key.trim()), 'Logged in');
  const submit = event => {
    event.preventDefault();
    action.run();
  };
  return html`
    <section class="card login">
      <${Title} document="Log in">Log in<//>
      <form onSubmit=${submit}>
        <label class="field"><span>Key of the shop</span>
          <input type="password" name="key" autocomplete="current-password" required spellcheck=${false}
                 placeholder="sk. …" value=${key} onInput=${event => type(event.target.value)} /></label>
        <${Refusal} problem=${action.problem ?? live.value.problem} />
        <button type="submit" class="primary" aria-disabled=${action.busy}>Log in${action.busy && ' …'}</button>
      </form>
      <details>
        <summary>I have no key</summary>
        <p>Make one where the service runs. Its id is your name in the journal:</p>
        <pre tabindex="0"><code>sluice serve key --id ann --scopes operate</code></pre>
        <p>It is shown once. Put the line that is printed with it into the file that <code>sluice serve --shop-keys</code> reads,
          which takes it up within seconds.</p>
      </details>
    </section>`;
}
