// What cannot be undone is done when the operator has typed the name of what it is done to.
import {html, useLayoutEffect, useRef, useState} from '../vendor/preact.js';
import {money, words} from '../lib/format.js';
import {mayAct} from '../lib/live.js';
import {useAction} from './action.js';
import {focusTitle} from './frame.js';
import {Refusal} from './notice.js';

// What two looks at an order, a payment or a refund may differ in.
const listed = rows => rows?.map(({amount, currency, state}) => `${money(amount, currency)} ${words(state)}`).join(', ');
const facets = [['State', one => words(one.state)], ['Units', one => one.units], ['Taken back', one => one.returned], ['Why', one => one.note],
                ['Payments', one => listed(one.payments)], ['Refunds', one => listed(one.refunds)]];
const changesOf = (seen, now) => facets.map(([name, of]) => [name, ...[seen, now].map(one => of(one) || 'none')])
  .filter(([, before, after]) => before !== after).map(([name, before, after]) => `${name}: it was ${before}, now it is ${after}`);

/**
 * A button, and the dialog that it opens. `name` has to be typed; `fields` are what else is asked for:
 * {name, label, type, required, min, max}. `work` gets {confirm, ...fields}; children explain what will happen.
 * Of what others may change meanwhile, `of`, the dialog shows, and `work` gets, what was seen when it was opened: then title, label,
 * fields and children may be functions of it. Where that is refused `newest(problem)` says how it stands, and one decides again,
 * if it `may` be done still.
 */
export function Confirm({of = true, may = () => true, label, about, kind = 'danger', ...rest}) {
  const dialog = useRef(null);
  const [seen, see] = useState(null);
  const one = seen ?? of;
  const say = what => (typeof what === 'function' ? what(one) : what);
  const show = () => {
    see(of);
    dialog.current.showModal();
  };
  if (!mayAct() || !(seen || may(of))) return null;
  const title = say(rest.title);
  return html`
    <button type="button" class=${kind} aria-haspopup="dialog" aria-label=${about && `${say(label)} ${about}`}
            onClick=${show}>${say(label)}</button>
    <dialog ref=${dialog} aria-label=${title} onClose=${() => see(null)}>
      ${seen && html`
        <${Question} ...${rest} ...${{title, seen, see, label: say(label), fields: say(rest.fields), may: may(seen)}}
                     close=${() => dialog.current?.close()} />`}
    </dialog>`;
}

function Question({title, name, fields = [], work, done, label, close, children, seen, see, newest, may}) {
  const [typed, type] = useState('');
  const [values, fill] = useState({});
  const form = useRef(null);
  const action = useAction(async body => {
    try {
      return await work(body, seen);
    } catch (problem) {
      const now = await newest?.(problem, seen);
      if (now && form.current) {
        problem.changes = changesOf(seen, now);
        type('');
        see(now);
      }
      throw problem;
    }
  }, done);
  useLayoutEffect(() => form.current.querySelector('input, button').focus(), [seen]);
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
      <${Refusal} problem=${action.problem} />
      <div class="explained">${may ? typeof children === 'function' ? children(seen, values) : children : 'Nothing of it can be done any more.'}</div>
      ${may && html`
      ${fields.map(field => html`
        <label class="field" key=${field.name}><span>${field.label}</span>
          <input type=${field.type ?? 'text'} min=${field.min} max=${field.max} required=${field.required} maxlength=${field.maxlength}
                 onInput=${event => set(field, event.target.value)} /></label>`)}
      <label class="field"><span>Type <b class="name">${name}</b> to confirm</span>
        <input type="text" autocomplete="off" autocapitalize="off" spellcheck=${false} value=${typed}
               onInput=${event => type(event.target.value)} /></label>`}
      <div class="row end">
        <button type="button" onClick=${close}>Back</button>
        ${may && html`
        <button type="submit" class="danger" disabled=${typed !== name} aria-disabled=${action.busy}>
          ${label.replace(/ ?…$/, '')}${action.busy && ' …'}</button>`}
      </div>
    </form>`;
}
