// What went wrong, where it went wrong; what there is to say where there is nothing to show.
import {html} from '../vendor/preact.js';
import {clock, words} from '../lib/format.js';

/** A refusal of the service, at the place of the action; what has changed since that was seen. */
export function Refusal({problem, again}) {
  if (!problem) return null;
  const members = Object.entries(problem.members ?? {})
    .filter(([name, value]) => !['type', 'instance'].includes(name) && typeof value !== 'object');
  return html`
    <div class="refusal" role="alert">
      <strong>${problem.title ?? problem.message}</strong>
      ${problem.detail && html`<p>${problem.detail}</p>`}
      ${problem.changes?.length > 0 && html`<ul class="findings">${problem.changes.map(text => html`<li key=${text}>${text}</li>`)}</ul>`}
      ${members.map(([name, value]) => html`<p class="small">${words(name)}: ${String(value)}</p>`)}
      ${again && html`<button type="button" class="plain" onClick=${again}>Try again</button>`}
    </div>`;
}

/** Of when it is what is shown, and asking anew. */
export const Age = ({of: {at, reload}}) => at > 0 && html`
  <p class="small age">As of ${clock(at)}
    <button type="button" class="plain" onClick=${reload}>Refresh</button></p>`;

export const Empty = ({title, children}) => html`
  <div class="empty"><strong>${title}</strong>${children && html`<p>${children}</p>`}</div>`;

export const Waiting = () => html`<p class="quiet" role="status">Asking …</p>`;

/** "open" in a colour; the word alone says all. */
export const Badge = ({kind = 'plain', children}) => html`<span class=${`badge ${kind}`}>${children}</span>`;

const kinds = {open: 'good', closed: 'plain', archived: 'plain', recovering: 'bad', full: 'warn', 'sold out': 'accent'};
export const StateBadge = ({state}) => html`<${Badge} kind=${kinds[state] ?? 'plain'}>${state}<//>`;
