// Tables, whose rows become cards where there is little room. The roles are said aloud: a browser forgets them
// when a style changes `display`.
import {html} from '../vendor/preact.js';
import {Empty, Refusal, Waiting} from './notice.js';

/** columns: [{head, cell: row => …, kind: 'number' | 'wide'}] */
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
    ${next && html`<p><button type="button" onClick=${more}>${busy ? 'Asking …' : 'More'}</button></p>`}`;
}
