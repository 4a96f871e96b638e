// Tables, whose rows become cards where there is little room. The roles are said aloud: a browser forgets them
// when a style changes `display`.
import {html} from '../vendor/preact.js';
import {words} from '../lib/format.js';
import {linkTo} from '../lib/route.js';
import {Age, Empty, Refusal, Waiting} from './notice.js';

/** columns: [{head, cell: row => …, kind: 'number' | 'fixed' | 'wide'}]; those that are fixed are never broken, nor numbers, but between their 'parts'. */
export function Table({caption, columns, rows, keyOf}) {
  return html`
    <div class="table" role="table" aria-label=${caption}>
      <div role="rowgroup" class="heads">
        <div role="row">${columns.map(({head, kind}) => html`<span role="columnheader" class=${kind}>${head}</span>`)}</div>
      </div>
      <div role="rowgroup">
        ${rows.map(row => html`
          <div role="row" key=${keyOf(row)}>
            ${columns.map(({head, cell, kind}) => html`
              <div role="cell" class=${kind} data-head=${head}>${cell(row)}</div>`)}
          </div>`)}
      </div>
    </div>`;
}

/** What usePages() brings, with its refusals, its end and its emptiness. */
export function Pages({pages, empty, children}) {
  const {rows, next, problem, busy, more, reload} = pages;
  return html`
    <${Refusal} problem=${problem} again=${rows ? more : reload} />
    ${!rows && busy && html`<${Waiting} />`}
    ${rows?.length === 0 && (typeof empty === 'string' ? html`<${Empty} title=${empty} />` : empty)}
    ${rows?.length > 0 && children(rows)}
    <${Age} of=${pages} />
    ${next && html`<p><button type="button" onClick=${more}>${busy ? 'Asking …' : 'More'}</button></p>`}`;
}

/** What there is of one thing; rows: [name, value, where it leads]. */
export const Facts = ({rows, kind = 'facts'}) => html`
  <dl class=${kind}>${rows.filter(Boolean).map(([name, value, to]) => html`
    <div key=${name}><dt>${to ? html`<a href=${to}>${name}</a>` : name}</dt><dd>${value}</dd></div>`)}</dl>`;

// What lists are narrowed by and lead to.

/** One of some words; choices: [[value, label]], or values that are their own labels. */
export const Choice = ({label, value, choices, choose}) => html`
  <label class="field"><span>${label}</span>
    <select value=${value} onChange=${event => choose(event.target.value)}>
      ${choices.map(choice => {
        const [name, shown] = Array.isArray(choice) ? choice : [choice, words(choice)];
        return html`<option key=${name} value=${name} selected=${name === value}>${shown}</option>`;
      })}
    </select></label>`;

export const OrderLink = ({sale, number}) =>
  (sale && number ? html`<a href=${linkTo('sales', sale, 'order', number)}>${number}</a>` : number || '–');
