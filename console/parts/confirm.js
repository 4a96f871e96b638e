// What cannot be undone is done when the operator has typed the name of what it is done to.
import {html, useLayoutEffect, useRef, useState} from '../vendor/preact.js';
import {mayAct} from '../lib/live.js';
import {useAction} from './action.js';
import {focusTitle} from './frame.js';
import {Refusal} from './notice.js';

/**
 * A button, and the dialog that it opens. `name` has to be typed; `fields` are what else is asked for:
 * {name, label, type, required, min, max}. `work` gets {confirm, ...fields}; children explain what will happen.
 */
export function Confirm({label, about, title, name, fields = [], work, done, kind = 'danger', children}) {
  const dialog = useRef(null);
  const [is_open, open] = useState(false);
  const show = () => {
    open(true);
    dialog.current.showModal();
  };
  if (!mayAct()) return null;
  return html`
    <button type="button" class=${kind} aria-haspopup="dialog" aria-label=${about && `${label} ${about}`}
            onClick=${show}>${label}</button>
    <dialog ref=${dialog} aria-label=${title} onClose=${() => open(false)}>
      ${is_open && html`
        <${Question} ...${{title, name, fields, work, done, label, children}}
                     close=${() => dialog.current?.close()} />`}
    </dialog>`;
}

function Question({title, name, fields, work, done, label, close, children}) {
  const [typed, type] = useState('');
  const [values, fill] = useState({});
  const form = useRef(null);
  const action = useAction(work, done);
  useLayoutEffect(() => form.current.querySelector('input').focus(), []);
  const submit = async event => {
    event.preventDefault();
    if (typed !== name || !await action.run({confirm: typed, ...values})) return;
    if (!form.current) return;  // a snapshot has shown what was done, or the operator has gone on, before the answer came
    close();
    focusTitle();  // the button may be gone with what it did
  };
  const set = ({name: field, type: kind}, text) =>
    fill(old => ({...old, [field]: kind === 'number' ? Number(text) : text}));
  return html`
    <form method="dialog" ref=${form} onSubmit=${submit}>
      <h2>${title}</h2>
      <div class="explained">${children}</div>
      ${fields.map(field => html`
        <label class="field" key=${field.name}><span>${field.label}</span>
          <input type=${field.type ?? 'text'} min=${field.min} max=${field.max} required=${field.required} maxlength=${field.maxlength}
                 onInput=${event => set(field, event.target.value)} /></label>`)}
      <label class="field"><span>Type <b class="name">${name}</b> to confirm</span>
        <input type="text" autocomplete="off" autocapitalize="off" spellcheck=${false} value=${typed}
               onInput=${event => type(event.target.value)} /></label>
      <${Refusal} problem=${action.problem} />
      <div class="row end">
        <button type="button" onClick=${close}>Back</button>
        <button type="submit" class="danger" disabled=${typed !== name} aria-disabled=${action.busy}>
          ${label.replace(/ ?…$/, '')}${action.busy && ' …'}</button>
      </div>
    </form>`;
}
