// One order, with all that belongs to it; units of it are taken back here.
import {html, useRef} from '../vendor/preact.js';
import {pathOfSale, post, randomKey} from '../lib/api.js';
import {count, moment, money, words} from '../lib/format.js';
import {useLoaded} from '../lib/lists.js';
import {linkTo} from '../lib/route.js';
import {Confirm} from '../parts/confirm.js';
import {Badge, Refusal, Waiting} from '../parts/notice.js';
import {messageColumns, refundColumns} from '../parts/sent.js';
import {Table} from '../parts/table.js';
import {paymentColumns} from './payments.js';
import {stateKinds} from './records.js';

export function Order({sale, rest: [number]}) {
  const {answer: order, problem, reload} = useLoaded(pathOfSale(sale.name, `/orders/${encodeURIComponent(number ?? '')}`));
  if (!order) return problem ? html`<${Refusal} problem=${problem} again=${reload} />` : html`<${Waiting} />`;
  const some = (title, columns, rows, keyOf) => rows?.length > 0 && html`
    <section><h2>${title}</h2><${Table} caption=${title} columns=${columns} rows=${rows} keyOf=${keyOf} /></section>`;
  return html`
    <${Refusal} problem=${problem} again=${reload} />
    <section class="card">
      <div class="row"><h2>${order.number}</h2><${Badge} kind=${stateKinds[order.state] ?? 'plain'}>${words(order.state)}<//></div>
      <${Facts} order=${order} sale=${sale} />
      <div class="row wrap"><${TakeBack} order=${order} sale=${sale} then=${reload} /></div>
    </section>
    ${some('Payments', paymentColumns(reload, sale.name), order.payments, row => `${row.provider} ${row.event}`)}
    ${some('Refunds', refundColumns(sale.name, reload), order.refunds?.map(row => ({...row, order: order.number})), row => row.key)}
    ${some('Webhooks', messageColumns(sale.name, reload), order.messages?.map(row => ({...row, order: order.number, id: `${row.order}:${row.seq}`})), row => row.seq)}
    <section><h2>History</h2>
      <${Table} caption="History" columns=${historyColumns} rows=${order.history} keyOf=${row => `${row.at} ${row.event}`} /></section>`;
}

const historyColumns = [
  {head: 'At', cell: ({at}) => moment(at)},
  {head: 'What', cell: ({event}) => words(event.replace('.', ' '))},
  {head: 'State', cell: ({data}) => words(data.state) || '–'},
  {head: 'Units', cell: ({data}) => count(data.units), kind: 'number'},
  {head: 'Amount', cell: ({data}) => (data.amount ? money(data.amount, data.currency) : '–'), kind: 'number'},
];

function Facts({order, sale}) {
  const facts = [
    ['Buyer', order.buyer], ['Units', count(order.units)], order.returned > 0 && ['Taken back', count(order.returned)],
    order.state === 'awaiting' && order.due > 0 && sale.currency && ['To pay', money(order.due, sale.currency)],
    order.state === 'awaiting' && order.pay_by && ['Until', moment(order.pay_by)],
    ['Issued', moment(order.issued_at)], order.reason && ['Why it ended', order.reason], ['Id', order.id], ['Request', order.request],
    !order.recorded && ['Database', order.dead_letter
      ? html`refused it: ${order.dead_letter.reason}. It is a <a href=${linkTo('sales', sale.name, 'letters')}>dead letter</a>`
      : 'does not have it yet'],
  ].filter(Boolean);
  return html`<dl class="fields">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** All that are left, where no number is given. The key names the wish: a repeat after no answer takes nothing more back. */
function TakeBack({order, sale, then}) {
  const key = useRef(randomKey());
  const left = order.units - (order.returned ?? 0);
  const is_paid = order.state === 'paid';
  if (!order.recorded || (!is_paid && order.state !== 'awaiting')) return null;
  const work = async ({units, ...body}) => {
    const answer = await post(pathOfSale(sale.name, `/orders/${order.id}/refund`), units ? {...body, units} : body, key.current);
    key.current = randomKey();
    await then();
    return answer;
  };
  return html`
    <${Confirm} label=${is_paid ? 'Refund …' : 'Cancel …'} title=${`${is_paid ? 'Refund' : 'Cancel'} ${order.number}`} name=${sale.name}
      fields=${[{name: 'units', label: `Units, of ${count(left)}; all without a number`, type: 'number', min: 1, max: left},
                {name: 'reason', label: 'Why (it stands in the journal)', required: true, maxlength: 1000}]}
      done=${({taken_back}) => `${count(taken_back.units)} taken back${taken_back.refund ? `, ${money(taken_back.refund, sale.currency)} goes back` : ''}`}
      work=${work}>
      The units go back into the sale${is_paid ? ', and what was paid for them goes back to the buyer' : ''}. That cannot be undone.
    <//>`;
}
