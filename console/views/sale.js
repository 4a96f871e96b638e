// One sale: what stands above all of its pages, and the first of them.
import {html, useState} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {clock, count, duration, moment, money, partsOf, rate, some, words} from '../lib/format.js';
import {historyOf} from '../lib/history.js';
import {mayAct} from '../lib/live.js';
import {linkTo} from '../lib/route.js';
import {useAction} from '../parts/action.js';
import {Counts, Meter, Stack} from '../parts/bars.js';
import {Chart} from '../parts/chart.js';
import {Confirm} from '../parts/confirm.js';
import {Title} from '../parts/frame.js';
import {Badge, Empty, Refusal, StateBadge} from '../parts/notice.js';
import {Facts, Table} from '../parts/table.js';
import {Room} from './room.js';

const parts = [
  ['Now', '', () => 0],
  ['Orders', 'orders', () => 0],
  ['Dead letters', 'letters', last => last.dead],
  ['Webhooks', 'messages', last => (last.messages?.dead ?? 0) + (last.messages?.failing ?? 0) + (last.messages?.stopped ?? 0)],
  ['Payments', 'payments', last => last.payments?.flagged ?? 0],
  ['Refunds', 'refunds', last => last.refunds_failing ?? 0],
  ['Money', 'totals', () => 0],
];

export function SaleFrame({sale, part, children}) {
  const {name} = sale;
  const document = `${name}${part && `, ${(parts.find(row => row[1] === part)?.[0] ?? part).toLowerCase()}`}`;
  return html`
    <div class="heading">
      <${Title} document=${document}>${name}<//>
      <${StateBadge} state=${sale.state} />
      <span class="terms">${terms(sale)}</span>
    </div>
    ${sale.trouble && html`<p class="refusal" role="alert"><strong>${sale.trouble}</strong></p>`}
    <nav class="tabs" aria-label=${`Pages of ${name}`}>
      ${parts.map(([label, way, n]) => html`
        <a key=${way} href=${linkTo('sales', name, ...(way ? [way] : []))} aria-current=${way === part ? 'page' : way === 'orders' && part === 'order' ? 'true' : undefined}>
          ${label}${n(sale.last) > 0 && html` <b class="badge bad">${count(n(sale.last))}${sale.last_at && ` at ${clock(sale.last_at)}`}</b>`}</a>`)}
    </nav>
    ${children}`;
}

function terms({price, currency, opens_at, closes_at}) {
  return [
    (price ?? null) !== null && `${money(price, currency)} a unit`,
    opens_at && `opens ${moment(opens_at)}`,
    closes_at && `closes ${moment(closes_at)}`,
  ].filter(Boolean).join(' · ');
}

export function Sale({sale, process}) {
  const {times, admitted, left} = historyOf(sale.name);
  return html`
    <div class="grid">
      <${Stock} sale=${sale} />
      <section class="card wide charts" aria-label="The last minutes">
        <${Chart} title="Admitted a second" times=${times} values=${admitted} format=${rate} tint="--accent" />
        <${Chart} title="Units left" times=${times} values=${left} format=${count} tint="--good" />
      </section>
      <${ByState} sale=${sale} trouble=${process.trouble} />
      <${Answers} sale=${sale} />
      ${sale.last.room && html`<${Room} sale=${sale} />`}
      ${sale.buckets && html`<${Buckets} sale=${sale} />`}
      <${Workers} sale=${sale} />
      <${Money} sale=${sale} />
      <${Proof} sale=${sale} />
    </div>`;
}

const Stock = ({sale}) => html`
  <section class="card stock" aria-label="Stock">
    <p class="figure huge"><b>${count(sale.left)}</b> <span>left of ${count(sale.stock)}</span></p>
    <${Meter} label="Left" value=${sale.left} max=${sale.stock} />
    <${Facts} rows=${[['Sold', count(sale.sold)], ['Orders', count(sale.orders)], ['Admitted', `${rate(sale.admitted_per_s)}/s`],
                      ['Being recorded', count(sale.waiting)]]} />
  </section>`;

function ByState({sale, trouble}) {
  const {by_state, due} = sale;
  return html`
    <section class="card">
      <h2>Orders by state</h2>
      ${by_state
        ? html`<${Stack} label="Orders by state" parts=${partsOf(sale)} />`
        : html`<p class="quiet">${trouble ? `That is not known now: ${trouble}` : 'The database has not said yet.'}</p>`}
      ${due && html`
        <p class="small">${due.next
          ? `Next payment due at ${moment(due.next)}, ${count(due.within_minute)} within a minute.`
          : 'No payment is due.'}</p>`}
    </section>`;
}

const welcome = new Set(['admitted', 'repeated']);

function Answers({sale}) {
  const rows = Object.entries(sale.answers ?? {})
    .map(([name, n]) => ({name: words(name), n, kind: welcome.has(name) ? 'good' : 'refused'}))
    .toSorted((a, b) => b.n - a.n);
  return html`
    <section class="card">
      <h2>Answers to buyers</h2>
      ${rows.length ? html`<${Counts} label="Answers to buyers" rows=${rows} />`
                    : html`<p class="quiet">This process has answered no buyer yet.</p>`}
      <p class="small">Of this process, since it began.</p>
    </section>`;
}

const Buckets = ({sale}) => html`
  <section class="card">
    <h2>Buckets</h2>
    <ul class="counts" aria-label="Buckets">
      ${sale.buckets.map(({bucket, stock, left}) => html`
        <li key=${bucket}><span>${bucket}</span><b>${count(left)} <small>of ${count(stock)}</small></b>
          <${Meter} kind="thin" label=${`Left in bucket ${bucket}`} value=${left} max=${stock} /></li>`)}
    </ul>
    <p class="small">${sale.in_transfer ? `${some(sale.in_transfer, 'unit')} on the way between buckets.` : 'Nothing is on the way between them.'}</p>
  </section>`;

const workerColumns = [
  {head: 'Worker', cell: ({name}) => name, kind: 'wide'},
  {head: 'Pending', cell: ({pending}) => count(pending), kind: 'number'},
  {head: 'Idle', cell: ({idle_ms}) => duration(idle_ms), kind: 'number'},
];

function Workers({sale}) {
  const {lag, worker, workers} = sale;
  return html`
    <section class="card">
      <h2>Workers</h2>
      <p class="figure"><b>${count(lag?.entries)}</b>${' '}
        <span>${lag?.entries === 1 ? 'order' : 'orders'} behind${lag?.entries > 0 && `, the oldest ${duration(lag.oldest_ms)}`}</span></p>
      ${workers?.length ? html`<${Table} caption="Workers" columns=${workerColumns} rows=${workers} keyOf=${row => row.name} />`
                        : html`<p class="quiet">No worker is at it just now.</p>`}
      ${worker && html`
        <p class="small">This process: ${count(worker.inserted)} recorded, ${count(worker.claimed)} taken over from others,
          ${` ${some(worker.failures, 'failure')}.`}${worker.last_failure && ` The last one: ${worker.last_failure}`}</p>`}
    </section>`;
}

function Money({sale}) {
  const {payments, refunds, messages} = sale;
  if (!payments && !messages) return null;
  const to = part => linkTo('sales', sale.name, part);
  return html`
    <section class="card">
      <h2>Payments and webhooks</h2>
      <${Facts} rows=${[
        ...(payments ? [
          ['Payments before their order', count(payments.waiting), `${to('payments')}?state=waiting`],
          ['Being decided', count(payments.asking)],
          ['To look at', count(payments.flagged), to('payments')],
          ['Refunds to do', count(refunds)],
          ['Refunds that fail', count(sale.refunds_failing), to('refunds')]] : []),
        ...(messages ? [
          ['Webhooks to send', count(messages.due)],
          ['Stopped by the receiver', count(messages.stopped)],
          ['Not taken, tried again', count(messages.failing)],
          ['Not delivered', count(messages.dead), to('messages')]] : [])]} />
    </section>`;
}

function Audit({sale}) {
  const [report, keep] = useState(null);
  const action = useAction(async () => {
    const found = await post(pathOfSale(sale.name, '/audit'));
    keep(found);
    return found;
  }, found => (found.sound ? 'Audit: sound' : 'Audit: not sound'));
  return html`
      <h2>Audit</h2>
      <p class="small">Compares each unit and each order of the store with the database. Buyers do not wait for it.</p>
      <p><button type="button" aria-disabled=${action.busy} onClick=${() => action.run()}>
        ${action.busy ? 'Comparing …' : 'Audit now'}</button></p>
      <${Refusal} problem=${action.problem} />
      ${report && html`
        <p><${Badge} kind=${report.sound ? 'good' : 'bad'}>${report.sound ? 'sound' : 'not sound'}<//>
          ${' '}${some(report.orders, 'order')} in ${duration(report.took_ms)}</p>`}
      ${report?.findings.length > 0 && html`<ul class="findings">${report.findings.map(text => html`<li key=${text}>${text}</li>`)}</ul>`}`;
}

const Proof = ({sale}) => mayAct() && html`
  <section class="card">
    <${Audit} sale=${sale} />
    <${Doors} sale=${sale} />
  </section>`;

/** A sale that was closed while the database was away is open to it still. */
const Over = ({sale: {name, state}}) => html`
  <h2>Change</h2>
  <${Empty} title="The sale is over">Its orders stay.<//>
  ${state === 'closed' && html`
    <${Confirm} label="Close again …" title=${`Close ${name} again`} name=${name} kind="plain" done=${`Sale ${name} is closed`}
      work=${body => post(pathOfSale(name, '/close'), body)}>
      Needed only where closing it was answered by a failure: so that no recovery opens it.
    <//>`}`;

function Doors({sale}) {
  const {name} = sale;
  if (['closed', 'archived'].includes(sale.state)) return html`<${Over} sale=${sale} />`;
  return html`
    <h2>Change</h2>
    <div class="row wrap">
      <${Confirm} label="Stock …" title=${`Change the stock of ${name}`} name=${name} kind="" done=${`Stock of ${name} changed`}
        fields=${[{name: 'stock', label: 'Units in all, those that are sold among them', type: 'number', min: sale.sold, required: true}]}
        work=${body => post(pathOfSale(name, '/stock'), body)}>
        Now it is ${count(sale.stock)}, of which ${count(sale.sold)} are sold. Fewer than are sold is refused.
      <//>
      <${Confirm} label="Close sale …" title=${`Close ${name}`} name=${name} done=${`Sale ${name} is closed`}
        work=${body => post(pathOfSale(name, '/close'), body)}>
        Nobody can buy from then on, and it cannot be opened again. ${some(sale.left, 'unit')} would stay unsold.
        Orders that are there stay, and are paid and recorded as before.
      <//>
    </div>
    <p class="small">Each change stands in the <a href=${linkTo('journal')}>journal</a>.</p>`;
}
