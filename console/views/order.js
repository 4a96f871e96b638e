// One order, with all that belongs to it; units of it are taken back here.
import {html, useRef} from '../vendor/preact.js';
import {pathOfSale, post, randomKey} from '../lib/api.js';
import {clock, count, moment, money, some, words} from '../lib/format.js';
import {useLoaded} from '../lib/lists.js';
import {linkTo} from '../lib/route.js';
import {Confirm} from '../parts/confirm.js';
import {Age, Badge, Refusal, Waiting} from '../parts/notice.js';
import {messageColumns, refundColumns} from '../parts/sent.js';
import {Facts, Table} from '../parts/table.js';
import {paymentColumns} from './payments.js';
import {stateKinds} from './records.js';

export function Order({sale, rest: [number]}) {
  const loaded = useLoaded(pathOfSale(sale.name, `/orders/${encodeURIComponent(number ?? '')}`));
  const {answer: order, problem, reload} = loaded;
  if (!order) return problem ? html`<${Refusal} problem=${problem} again=${reload} />` : html`<${Waiting} />`;
  const list = (title, columns, rows, keyOf) => rows?.length > 0 && html`
    <section><h2>${title}</h2><${Table} caption=${title} columns=${columns.filter(({head}) => head !== 'Order')} rows=${rows} keyOf=${keyOf} /></section>`;
  return html`
    <${Refusal} problem=${problem} again=${reload} />
    <${Age} of=${loaded} />
    <section class="card">
      <div class="row"><h2>${order.number}</h2><${Badge} kind=${stateKinds[order.state] ?? 'plain'}>${words(order.state)}<//></div>
      <${Facts} kind="fields" rows=${factsOf(order, sale)} />
      <div class="row wrap"><${TakeBack} order=${order} sale=${sale} then=${reload} /></div>
    </section>
    ${list('Payments', paymentColumns(reload, sale.name), order.payments, row => `${row.provider} ${row.event}`)}
    ${list('Refunds', refundColumns(sale.name, reload), order.refunds?.map(row => ({...row, order: order.number})), row => row.key)}
    ${list('Webhooks', messageColumns(sale.name, reload), order.messages?.map(row => ({...row, order: order.number, id: `${row.order}:${row.seq}`})), row => row.seq)}
    ${list('History', historyColumns, order.history, row => `${row.at} ${row.event}`)}`;
}

const historyColumns = [
  {head: 'At', cell: ({at}) => moment(at), kind: 'fixed'},
  {head: 'What', cell: ({event}) => words(event.replace('.', ' '))},
  {head: 'State', cell: ({data}) => words(data.state) || '–'},
  {head: 'Units', cell: ({data}) => count(data.units), kind: 'number'},
  {head: 'Amount', cell: ({data}) => (data.amount ? money(data.amount, data.currency) : '–'), kind: 'number'},
  {head: 'Why', cell: ({data}) => data.note || '–', kind: 'wide'},
];

const factsOf = (order, sale) => [
  ['Buyer', order.buyer], ['Units', count(order.units)], order.returned > 0 && ['Taken back', count(order.returned)],
  order.state === 'awaiting' && order.due > 0 && sale.currency && ['To pay', money(order.due, sale.currency)],
  order.state === 'awaiting' && order.pay_by && ['Until', moment(order.pay_by)],
  ['Issued', moment(order.issued_at)], order.reason && ['Why it ended', order.reason], ['Id', order.id], ['Request', order.request],
  !order.recorded && ['Database', order.dead_letter
    ? html`refused it: ${order.dead_letter.reason}. It is a <a href=${linkTo('sales', sale.name, 'letters')}>dead letter</a>`
    : 'does not have it yet'],
];

const unitsLeft = order => order.units - (order.returned ?? 0);
const mayTakeBack = ({recorded, state}) => recorded && ['paid', 'awaiting'].includes(state);
const verb = ({state}) => (state === 'paid' ? 'Refund' : 'Cancel');

/** All that are left, where no number is given. The key names the wish: a repeat after no answer takes nothing more back. */
function TakeBack({order, sale, then}) {
  const key = useRef(randomKey());
  const work = async ({units, ...body}, {tag}) => {
    const answer = await post(pathOfSale(sale.name, `/orders/${order.id}/refund`), units ? {...body, units} : body, {key: key.current, tag});
    key.current = randomKey();
    await then();
    return answer;
  };
  const newest = ({members}) => {
    if (members.type?.endsWith('other-refund')) key.current = randomKey();  // the wish before was done
    return then();
  };
  return html`
    <${Confirm} of=${order} may=${mayTakeBack} newest=${newest} label=${seen => `${verb(seen)} …`} title=${seen => `${verb(seen)} ${seen.number}`}
      name=${sale.name} work=${work}
      fields=${seen => [
        {name: 'units', label: `Units, of ${count(unitsLeft(seen))}; all without a number`, type: 'number', min: 1, max: unitsLeft(seen)},
        {name: 'reason', label: 'Why (it stands in the journal)', required: true, maxlength: 1000}]}
      done=${({taken_back}) => `${count(taken_back.units)} taken back${taken_back.refund ? `, ${money(taken_back.refund, sale.currency)} goes back` : ''}`}>
      ${(seen, {units}) => html`
        <p>Back into the sale: ${some(units || unitsLeft(seen), 'unit')} of ${seen.buyer}. That cannot be undone.</p>
        <p><b>${seen.state === 'paid' && sale.price ? `${money((units || unitsLeft(seen)) * sale.price, sale.currency)} goes back to the buyer` : 'No money goes back: it is not paid'}</b>,
          as of ${clock(seen.at)}.</p>`}
    <//>`;
}
