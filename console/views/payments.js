// Payments, of a sale or of all: those that paid no order are settled here.
import {html} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {moment, money, some, words} from '../lib/format.js';
import {useLoaded, usePages} from '../lib/lists.js';
import {useWord} from '../lib/route.js';
import {Confirm} from '../parts/confirm.js';
import {Title} from '../parts/frame.js';
import {Choice, OrderLink, Pages, Table} from '../parts/table.js';
import {AllMoney} from './records.js';

const reason = [{name: 'reason', label: 'Why (it stays with the payment)', required: true, maxlength: 1000}];
const needsPerson = ['flagged', 'waiting'];

const isOpen = ({state, failure}) => needsPerson.includes(state) || (state === 'refunding' && Boolean(failure));

/** Whose money it is: nobody has to know a number by heart. */
function Whose({payment: {sale, order}}) {
  const {answer} = useLoaded(pathOfSale(sale, `/orders/${encodeURIComponent(order)}`));
  return html`<p>Paid for order ${order}${answer && ` of ${answer.buyer}, ${words(answer.state)}, ${some(answer.units, 'unit')}`}.</p>`;
}

/** What a person may make of a payment; `then` is told when it is done. */
export function Settling({payment, then}) {
  const {provider, event, amount: paid, currency} = payment;
  const amount = money(paid, currency);
  const ask = way => async (body, {state}) => {
    const answer = await post(`/v1/operate/payments/${encodeURIComponent(provider)}/${encodeURIComponent(event)}${way}`, body, {tag: `"${state}"`});
    await then();
    return answer;
  };
  const common = {of: payment, may: isOpen, newest: ({members}) => members.payment, about: event, name: provider, fields: reason};
  return html`
    <div class="row wrap">
      <${Confirm} ...${common} label=${({state}) => (state === 'refunding' ? 'Send back now …' : 'Send back …')} title=${`Send ${amount} back`}
        done=${`${amount} goes back`} work=${ask('/refund')}>
        <${Whose} payment=${payment} />
        ${amount} goes back by ${provider}, whatever the order does. That cannot be undone.
      <//>
      <${Confirm} ...${common} label="Settle …" title=${`Settle payment ${event}`} kind=""
        done=${`Payment ${event} is settled`} work=${ask('/settle')}>
        <${Whose} payment=${payment} />
        ${amount} was handled outside: nothing is sent to anybody, and nothing happens to the order.
      <//>
    </div>`;
}

export const paymentColumns = (then, sale) => [
  {head: 'Order', cell: payment => html`<${OrderLink} sale=${payment.state !== 'waiting' && payment.sale} number=${payment.order} />`, kind: 'fixed'},
  ...(sale ? [] : [{head: 'Sale', cell: payment => payment.sale, kind: 'wide'}]),
  {head: 'Amount', cell: ({amount, currency}) => money(amount, currency), kind: 'number'},
  {head: 'Provider', cell: ({provider}) => provider, kind: 'fixed'},
  {head: 'Event', cell: ({event}) => event, kind: 'wide'},
  {head: 'State', cell: ({state}) => words(state), kind: 'fixed'},
  {head: 'Why', cell: ({note, failure, state}) => [note, failure].filter(Boolean).join('; ') || (state === 'waiting' ? 'no order here has that number yet' : '–'), kind: 'wide'},
  {head: 'At', cell: ({at}) => moment(at), kind: 'fixed'},
  {head: 'Settle', cell: payment => isOpen(payment) && html`<${Settling} payment=${payment} then=${then} />`},
];

const states = [['flagged', 'to look at'], ['waiting', 'no such order yet'], ['refunding', 'going back'], 'refunded', 'settled', 'asking', 'applied', 'returned'];

function List({path, sale}) {
  const [state, choose] = useWord('state', 'flagged');
  const pages = usePages(`${path}?state=${encodeURIComponent(state)}`, 'payments');
  return html`
    <p class="small">Payments that did not pay their order: look at them together with your provider, then send the money back, or say how it was settled.</p>
    <div class="row wrap search"><${Choice} label="Payments" value=${state} choices=${states} choose=${choose} /></div>
    <${Pages} pages=${pages} empty=${state === 'flagged' ? 'No payment needs to be looked at' : 'There is none'}>
      ${rows => html`<${Table} caption="Payments" columns=${paymentColumns(pages.reload, sale)} rows=${rows} keyOf=${row => `${row.provider} ${row.event}`} />`}
    <//>`;
}

export const Payments = ({sale}) => html`
  <${List} path=${pathOfSale(sale.name, '/payments')} sale=${sale.name} />`;

export const AllPayments = () => html`
  <${Title} document="Payments">Payments<//>
  <${List} path="/v1/operate/payments" />
  <${AllMoney} />`;
