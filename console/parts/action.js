// A button that asks the service for something, and tells at its side what came of it.
import {html, useEffect, useRef, useState} from '../vendor/preact.js';
import {announcement, mayAct} from '../lib/live.js';
import {Refusal} from './notice.js';

const shownFor = 6000;

/** Runs `work` once at a time; `what` is told for a while when it is done. */
export function useAction(work, what) {
  const [state, set] = useState({busy: false, problem: null, done: ''});
  const seen = useRef(true);
  useEffect(() => () => { seen.current = false; }, []);
  useEffect(() => {
    const timer = state.done && setTimeout(() => set(old => ({...old, done: ''})), shownFor);
    return () => clearTimeout(timer);
  }, [state.done]);
  const run = async (...arguments_) => {
    if (state.busy) return false;
    set({busy: true, problem: null, done: ''});
    try {
      const answer = await work(...arguments_);
      const done = typeof what === 'function' ? what(answer) : what;
      if (seen.current) set({busy: false, problem: null, done});
      announcement.set(done);
      return true;
    } catch (problem) {
      if (seen.current) set({busy: false, problem, done: ''});
      return false;
    }
  };
  return {...state, run};
}

export function Action({label, about, work, done, kind = ''}) {
  const action = useAction(work, done);
  if (!mayAct()) return null;
  return html`
    <span class="action">
      <button type="button" class=${kind} aria-disabled=${action.busy} aria-label=${about && `${label} ${about}`}
              onClick=${() => action.run()}>${label}${action.busy && ' …'}</button>
      ${action.done && html`<span class="done">${action.done}</span>`}
      <${Refusal} problem=${action.problem} />
    </span>`;
}

export function NumberAction({label, value, unit, least = 0, step = 1, work, done}) {
  const [text, type] = useState('');
  const action = useAction(work, done);
  const submit = async event => {
    event.preventDefault();
    if (await action.run(Number(text))) type('');
  };
  if (!mayAct()) return null;
  return html`
    <form class="number" onSubmit=${submit}>
      <label><span>${label}</span>
        <input type="number" inputmode="decimal" min=${least} step=${step} required placeholder=${value}
               value=${text} onInput=${event => type(event.target.value)} /></label>
      ${unit && html`<span class="unit">${unit}</span>`}
      <button type="submit" aria-disabled=${action.busy} aria-label=${`Set: ${label}`}>Set</button>
      ${action.done && html`<span class="done">${action.done}</span>`}
      <${Refusal} problem=${action.problem} />
    </form>`;
}
