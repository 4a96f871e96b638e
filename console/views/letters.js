// Dead letters: orders that the database refused. Each is tried again, or settled for good.
import {html} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {moment, some} from '../lib/format.js';
import {usePages} from '../lib/lists.js';
import {Action} from '../parts/action.js';
import {Confirm} from '../parts/confirm.js';
import {focusTitle} from '../parts/frame.js';
import {Empty} from '../parts/notice.js';
import {Pages} from '../parts/table.js';

export function Letters({sale}) {
  const pages = usePages(pathOfSale(sale.name, '/dead-letters'), 'letters');
  const empty = html`<${Empty} title="There are no dead letters">An order that the database refuses for good is set aside here.<//>`;
  return html`
    <p class="small">Orders that buyers were told of, and that the database refused. Their units are sold until you settle them.</p>
    <${Pages} pages=${pages} empty=${empty}>
      ${letters => html`<ul class="letters">${letters.map(letter => html`
        <${Letter} key=${letter.id} letter=${letter} sale=${sale.name} gone=${pages.reload} />`)}</ul>`}
    <//>`;
}

function Letter({letter, sale, gone}) {
  const {id, entry, reason, order, fields} = letter;
  const path = pathOfSale(sale, `/dead-letters/${encodeURIComponent(id)}`);
  const and_look = async answer => {
    await gone();
    focusTitle();  // the letter had it
    return answer;
  };
  const name = order?.number ?? id;
  return html`
    <li class="card letter">
      <h2>${name}</h2>
      <p class="reason">${reason}</p>
      ${order && html`<p class="small">${some(order.units, 'unit')} of ${order.buyer}, issued ${moment(order.issued_at)}</p>`}
      <details><summary>What is in it</summary>
        <dl class="fields"><div><dt>entry</dt><dd>${entry}</dd></div>
          ${Object.entries(fields ?? {}).map(([field, value]) => html`<div key=${field}><dt>${field}</dt><dd>${value}</dd></div>`)}</dl>
      </details>
      <div class="row wrap">
        <${Action} label="Revive" about=${name} work=${() => post(`${path}/revive`).then(and_look)} done=${`${name} is tried again`} />
        <${Confirm} label="Settle …" about=${name} title=${`Settle ${name}`} name=${sale} done=${`${name} is settled`}
          fields=${[{name: 'reason', label: 'Why (it stands in the journal)', required: true, maxlength: 1000}]}
          work=${body => post(`${path}/settle`, body).then(and_look)}>
          The order ends, its units go back into the sale, and the letter is gone. Tell its buyer.
        <//>
      </div>
    </li>`;
}
