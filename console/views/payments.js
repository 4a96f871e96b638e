// Payments, of a sale or of all: those that paid no order are settled here.
import {html, useState} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {moment, money, words} from '../lib/format.js';
import {usePages} from '../lib/lists.js';
import {Choice} from '../parts/choice.js';
import {Confirm} from '../parts/confirm.js';
import {Title} from '../parts/frame.js';
import {OrderLink} from '../parts/order_link.js';
import {Pages, Table} from '../parts/table.js';
import {AllMoney} from './records.js';

const reason = [{name: 'reason', label: 'Why (it stays with the payment)', required: true, maxlength: 1000}];
const needsPerson = ['flagged', 'waiting'];

/** What a person may make of a payment; `then` is told when it is done. */
export function Settling({payment, then}) {
  const {provider, event, state, failure} = payment;
  const path = `/v1/operate/payments/${encodeURIComponent(provider)}/${encodeURIComponent(event)}`;
  const ask = way => async body => {
    const answer = await post(`${path}${way}`, body);
    await then();
    return answer;
  };
  if (!needsPerson.includes(state) && !(state === 'refunding' && failure)) return null;
  const amount = money(payment.amount, payment.currency);
  return html`
    <div class="row wrap">
      <${Confirm} label=${state === 'refunding' ? 'Send back now …' : 'Send back …'} about=${event} title=${`Send ${amount} back`} name=${provider} fields=${reason}
        done=${`${amount} goes back`} work=${ask('/refund')}>
        ${amount} goes back by ${provider}, whatever the order does. That cannot be undone.
      <//>
      <${Confirm} label="Settle …" about=${event} title=${`Settle payment ${event}`} name=${provider} fields=${reason} kind=""
        done=${`Payment ${event} is settled`} work=${ask('/settle')}>
        It was handled outside: nothing is sent to anybody, and nothing happens to the order.
      <//>
    </div>`;
}

export const paymentColumns = (then, sale) => [
  {head: 'Order', cell: payment => html`<${OrderLink} sale=${sale} number=${payment.order} />`, kind: 'wide'},
  ...(sale ? [] : [{head: 'Sale', cell: payment => payment.sale, kind: 'wide'}]),
  {head: 'Amount', cell: ({amount, currency}) => money(amount, currency), kind: 'number'},
  {head: 'Provider', cell: ({provider}) => provider},
  {head: 'Event', cell: ({event}) => event, kind: 'wide'},
  {head: 'State', cell: ({state}) => words(state)},
  {head: 'Why', cell: ({note, failure}) => [note, failure].filter(Boolean).join('; ') || '–', kind: 'wide'},
  {head: 'At', cell: ({at}) => moment(at)},
  {head: 'Settle', cell: payment => html`<${Settling} payment=${payment} then=${then} />`},
];

const states = [['flagged', 'to look at'], ['waiting', 'no such order yet'], ['refunding', 'going back'], 'refunded', 'settled', 'asking', 'applied', 'returned'];

function List({path, sale, version}) {
  const [state, choose] = useState('flagged');
  const pages = usePages(`${path}?state=${state}`, 'payments', version);
  return html`
    <p class="small">Payments that did not pay their order: look at them together with your provider, then send the money back, or say how it was settled.</p>
    <div class="row wrap search"><${Choice} label="Payments" value=${state} choices=${states} choose=${choose} /></div>
    <${Pages} pages=${pages} empty=${state === 'flagged' ? 'No payment needs to be looked at' : 'There is none'}>
      ${rows => html`<${Table} caption="Payments" columns=${paymentColumns(pages.reload, sale)} rows=${rows} keyOf=${row => `${row.provider} ${row.event}`} />`}
    <//>`;
}

export const Payments = ({sale}) => html`
  <${List} path=${pathOfSale(sale.name, '/payments')} sale=${sale.name} version=${sale.payments?.flagged} />`;

/** Also of sales that nobody knows. */
export const AllPayments = () => html`
  <${Title} document="Payments">Payments<//>
  <${List} path="/v1/operate/payments" />
  <${AllMoney} />`;
