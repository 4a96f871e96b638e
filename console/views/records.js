// What the database keeps of a sale: its orders, its webhooks, its payments.
import {html, useState} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {count, moment, money, some, words} from '../lib/format.js';
import {usePages} from '../lib/lists.js';
import {Action} from '../parts/action.js';
import {Badge, Empty} from '../parts/notice.js';
import {Pages, Table} from '../parts/table.js';

// Orders by number, id or buyer.

const kinds = {paid: 'good', awaiting: 'warn', refunding: 'warn'};

const orderColumns = [
  {head: 'Number', cell: ({number}) => number, kind: 'wide'},
  {head: 'Buyer', cell: ({buyer}) => buyer ?? '–', kind: 'wide'},
  {head: 'Units', cell: ({units}) => count(units), kind: 'number'},
  {head: 'State', cell: ({state}) => html`<${Badge} kind=${kinds[state] ?? 'plain'}>${words(state)}<//>`},
  {head: 'Issued', cell: ({issued_at}) => moment(issued_at)},
  {head: 'Id', cell: ({id}) => id, kind: 'wide'},
];

export function Orders({sale}) {
  const [typed, type] = useState('');
  const [wanted, want] = useState('');
  const pages = usePages(pathOfSale(sale.name, `/orders${wanted && `?q=${encodeURIComponent(wanted)}`}`), 'orders');
  const submit = event => {
    event.preventDefault();
    want(typed.trim());
  };
  const empty = wanted ? html`<${Empty} title=${`No order has the number, the id or the buyer “${wanted}”`} />`
                       : html`<${Empty} title="There are no orders yet">They are here when the database has them.<//>`;
  return html`
    <form class="row wrap search" role="search" onSubmit=${submit}>
      <label class="field"><span>Number, id or buyer</span>
        <input type="search" value=${typed} maxlength="128" spellcheck=${false} onInput=${event => type(event.target.value)} /></label>
      <button type="submit">Find</button>
    </form>
    <${Pages} pages=${pages} empty=${empty}>
      ${rows => html`<${Table} caption="Orders" columns=${orderColumns} rows=${rows} keyOf=${row => row.id} />`}
    <//>`;
}

// Webhooks that the shop did not take, and sending them again.

const messageColumns = [
  {head: 'Order', cell: ({order}) => order, kind: 'wide'},
  {head: 'Message', cell: ({type, seq}) => `${type} (${seq})`, kind: 'wide'},
  {head: 'Since', cell: ({at}) => moment(at)},
  {head: 'Attempts', cell: ({attempts}) => attempts, kind: 'number'},
];

export function Messages({sale}) {
  const path = pathOfSale(sale.name, '/messages');
  const pages = usePages(`${path}?state=dead`, 'messages', sale.messages?.dead);
  const replay = async () => {
    const answer = await post(`${path}/replay`);
    await pages.reload();
    return answer;
  };
  return html`
    <div class="row wrap">
      <p class="small">What happened to orders is told to your shop. These messages were sent again and again, and not taken.</p>
      <${Action} label="Send all again" work=${replay} done=${({replayed}) => `${some(replayed, 'message')} on the way`} />
    </div>
    <${Pages} pages=${pages} empty="All messages were delivered, or are on their way">
      ${rows => html`<${Table} caption="Messages that were not delivered" columns=${messageColumns} rows=${rows} keyOf=${row => `${row.order} ${row.seq}`} />`}
    <//>`;
}

// Payments that a person has to look at: of another amount, for an order that has ended, a second one.

const paymentColumns = [
  {head: 'Order', cell: ({order}) => order, kind: 'wide'},
  {head: 'Amount', cell: ({amount, currency}) => money(amount, currency), kind: 'number'},
  {head: 'Provider', cell: ({provider}) => provider},
  {head: 'Event', cell: ({event}) => event, kind: 'wide'},
  {head: 'State', cell: ({state}) => words(state)},
  {head: 'Why', cell: ({note}) => note || '–', kind: 'wide'},
  {head: 'At', cell: ({at}) => moment(at)},
];

export function Payments({sale}) {
  const pages = usePages(pathOfSale(sale.name, '/payments?state=flagged'), 'payments', sale.payments?.flagged);
  return html`
    <p class="small">Payments that did not pay their order: look at them together with your provider.</p>
    <${Pages} pages=${pages} empty="No payment needs to be looked at">
      ${rows => html`<${Table} caption="Payments to look at" columns=${paymentColumns} rows=${rows} keyOf=${row => `${row.provider} ${row.event}`} />`}
    <//>`;
}
