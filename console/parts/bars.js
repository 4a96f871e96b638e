// Bars: what is left, parts of a whole, how often.
import {html} from '../vendor/preact.js';
import {count, percent} from '../lib/format.js';

const width = (part, all) => ({width: `${all > 0 ? Math.min(100, Math.max(0, (100 * part) / all)) : 0}%`});

export const Meter = ({label, value, max, kind = ''}) => html`
  <div class=${`meter ${kind}`} role="meter" aria-label=${label} aria-valuemin="0" aria-valuemax=${Math.max(max, 0)}
       aria-valuenow=${Math.min(value, max)} aria-valuetext=${`${count(value)} of ${count(max)}`}>
    <span style=${width(value, max)}></span>
  </div>`;

/** Parts of a whole as one bar, for those who have it in words, too. */
export const Strip = ({parts, kind = ''}) => html`
  <div class=${`stack ${kind}`} aria-hidden="true">
    ${parts.filter(({n}) => n > 0).map(({name, n}) => html`
      <span key=${name} class=${`of-${name}`} style=${{flexGrow: String(n)}}></span>`)}
  </div>`;

/** Parts of a whole, as one bar and in words. parts: [{name, label, n}] */
export function Stack({parts, label}) {
  const all = parts.reduce((sum, {n}) => sum + n, 0);
  return html`
    <${Strip} parts=${parts} />
    <ul class="legend" aria-label=${label}>
      ${parts.map(({name, label: text, n}) => html`
        <li key=${name} class=${n ? '' : 'none'}>
          <i class=${`of-${name}`}></i><span>${text}</span><b>${count(n)}</b><small>${percent(n, all)}</small></li>`)}
    </ul>`;
}

/** How often each was: rows of {name, n}, the longest bar is the most. */
export function Counts({rows, label}) {
  const most = Math.max(1, ...rows.map(({n}) => n));
  return html`
    <ul class="counts" aria-label=${label}>
      ${rows.map(({name, n, kind = ''}) => html`
        <li key=${name}><span>${name}</span><b>${count(n)}</b>
          <div class=${`meter thin ${kind}`} aria-hidden="true"><span style=${width(n, most)}></span></div></li>`)}
    </ul>`;
}
