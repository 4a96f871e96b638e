// What went wrong, where it went wrong; what there is to say where there is nothing to show.
import {html} from '../vendor/preact.js';

const shown = value => (typeof value === 'object' ? JSON.stringify(value) : String(value));

/** A refusal of the service, at the place of the action. */
export function Refusal({problem, again}) {
  if (!problem) return null;
  const members = Object.entries(problem.members ?? {}).filter(([name]) => !['type', 'instance'].includes(name));
  return html`
    <div class="refusal" role="alert">
      <strong>${problem.title ?? problem.message}</strong>
      ${problem.detail && html`<p>${problem.detail}</p>`}
      ${members.map(([name, value]) => html`<p class="small">${name}: ${shown(value)}</p>`)}
      ${again && html`<button type="button" class="plain" onClick=${again}>Try again</button>`}
    </div>`;
}

export const Empty = ({title, children}) => html`
  <div class="empty"><strong>${title}</strong>${children && html`<p>${children}</p>`}</div>`;

export const Waiting = () => html`<p class="quiet" role="status">Asking …</p>`;

/** "open" in a colour; the word alone says all. */
export const Badge = ({kind = 'plain', children}) => html`<span class=${`badge ${kind}`}>${children}</span>`;

const kinds = {open: 'good', closed: 'plain', archived: 'plain', recovering: 'bad', full: 'warn', 'sold out': 'accent'};
export const StateBadge = ({state}) => html`<${Badge} kind=${kinds[state] ?? 'plain'}>${state}<//>`;
