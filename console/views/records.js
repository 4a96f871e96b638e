// What the database keeps of a sale: its orders, its webhooks, its refunds, its money by day; and what it refused.
import {html, useEffect, useState} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {count, moment, money, some, words} from '../lib/format.js';
import {useLoaded, usePages} from '../lib/lists.js';
import {useWord} from '../lib/route.js';
import {Action} from '../parts/action.js';
import {Confirm} from '../parts/confirm.js';
import {focusTitle} from '../parts/frame.js';
import {Age, Badge, Empty, Refusal, Waiting} from '../parts/notice.js';
import {messageColumns, refundColumns} from '../parts/sent.js';
import {Choice, Facts, OrderLink, Pages, Table} from '../parts/table.js';

const states = ['awaiting', 'paid', 'cancelled', 'expired', 'refunding', 'refunded'];
export const stateKinds = {paid: 'good', awaiting: 'warn', refunding: 'warn'};

const orderColumns = sale => [
  {head: 'Number', cell: ({number}) => html`<${OrderLink} sale=${sale} number=${number} />`, kind: 'fixed'},
  {head: 'Buyer', cell: ({buyer}) => buyer ?? '–', kind: 'wide'},
  {head: 'Units', cell: ({units, returned}) => (returned > 0 ? `${count(units - returned)} of ${count(units)}` : count(units)), kind: 'number'},
  {head: 'State', cell: ({state}) => html`<${Badge} kind=${stateKinds[state] ?? 'plain'}>${words(state)}<//>`},
  {head: 'Issued', cell: ({issued_at}) => moment(issued_at), kind: 'fixed'},
  {head: 'Id', cell: ({id}) => id, kind: 'fixed'},
];

export function Orders({sale}) {
  const [wanted, want] = useWord('q');
  const [state, choose] = useWord('state');
  const [typed, type] = useState(wanted);
  useEffect(() => type(wanted), [wanted]);
  const query = new URLSearchParams({...(wanted && {q: wanted}), ...(state && {state})}).toString();
  const pages = usePages(pathOfSale(sale.name, `/orders${query && `?${query}`}`), 'orders');
  const submit = event => {
    event.preventDefault();
    want(typed.trim());
  };
  const empty = wanted || state ? html`<${Empty} title=${wanted ? `No order has the number, the id or the buyer “${wanted}”, and none of the latest a part like it` : `No order is ${state}`} />`
                       : html`<${Empty} title="There are no orders yet">They are here when the database has them.<//>`;
  return html`
    <form class="row wrap search" role="search" onSubmit=${submit}>
      <label class="field"><span>Number, id or buyer; of the latest orders also a part</span>
        <input type="search" value=${typed} maxlength="128" spellcheck=${false} onInput=${event => type(event.target.value)} /></label>
      <${Choice} label="State" value=${state} choices=${[['', 'any'], ...states]} choose=${choose} />
      <button type="submit">Find</button>
    </form>
    <${Pages} pages=${pages} empty=${empty}>
      ${rows => html`<${Table} caption="Orders" columns=${orderColumns(sale.name)} rows=${rows} keyOf=${row => row.id} />`}
    <//>`;
}

// Webhooks that the shop did not take, and sending them again.

/** Whether the shop takes them, as far as the database says. */
const Target = ({messages}) => messages?.stopped > 0 ? html`
  <p class="refusal" role="alert"><strong>Stopped by the receiver since ${moment(messages.stopped_since)}: ${messages.last_failure || 'it answered 410'}</strong>
    ${' '}${some(messages.stopped, 'message waits', 'messages wait')}, and none is sent until you press Send all again.</p>`
  : messages?.failing > 0 && html`
  <p class="refusal" role="alert"><strong>Not delivered since ${moment(messages.failing_since)}: ${messages.last_failure}</strong>
    ${' '}${some(messages.failing, 'message')} tried again by and by.</p>`;

export function Messages({sale}) {
  const {messages} = sale.last;
  const path = pathOfSale(sale.name, '/messages');
  const [usual] = useState(messages?.dead === 0 && (messages.stopped > 0 ? 'due' : messages.failing > 0 && 'failing') || 'dead');
  const [state, choose] = useWord('state', usual);
  const pages = usePages(`${path}?state=${encodeURIComponent(state)}`, 'messages');
  const replay = async () => {
    const answer = await post(`${path}/replay`);
    await pages.reload();
    return answer;
  };
  const empty = state !== 'dead' ? 'There is none'
    : messages?.failing > 0 || messages?.stopped > 0 ? 'None was given up yet' : 'All messages were delivered, or are on their way';
  return html`
    <${Target} messages=${messages} />
    <div class="row wrap search">
      <${Choice} label="Messages" value=${state} choose=${choose}
        choices=${[['dead', 'given up'], ['failing', 'not taken yet'], ['due', 'to send'], ['done', 'delivered']]} />
      ${(state === 'dead' || messages?.stopped > 0) && html`<${Action} label="Send all again" work=${replay} done=${({replayed}) => `${some(replayed, 'message')} on the way`} />`}
    </div>
    <p class="small">What happened to orders is told to your shop. What it does not take is sent again, and given up after two days.</p>
    <${Pages} pages=${pages} empty=${empty}>
      ${rows => html`<${Table} caption="Messages" columns=${messageColumns(sale.name, pages.reload)} rows=${rows} keyOf=${row => row.id} />`}
    <//>`;
}

export function Refunds({sale}) {
  const [state, choose] = useWord('state', 'failing');
  const pages = usePages(pathOfSale(sale.name, `/refunds?state=${encodeURIComponent(state)}`), 'refunds');
  return html`
    <div class="row wrap search">
      <${Choice} label="Refunds" value=${state} choices=${['failing', ['asked', 'to do'], 'done']} choose=${choose} />
    </div>
    <${Pages} pages=${pages} empty=${state === 'failing' ? 'No refund fails' : 'There is none'}>
      ${rows => html`<${Table} caption="Refunds" columns=${refundColumns(sale.name, pages.reload)} rows=${rows} keyOf=${row => row.key} />`}
    <//>`;
}

// Money by day: what came in and went back, as the provider's statement has it; and what orders are worth, by their state.

const minutes = () => -new Date().getTimezoneOffset();
const movedColumns = [
  {head: 'Day', cell: ({day}) => day},
  {head: 'Provider', cell: ({provider}) => provider},
  {head: 'Paid in', cell: ({paid, payments, currency}) => `${money(paid, currency)} (${count(payments)})`, kind: 'number'},
  {head: 'Given back', cell: ({given_back, refunds, currency}) => `${money(given_back, currency)} (${count(refunds)})`, kind: 'number'},
  {head: 'Settled by hand', cell: ({settled, currency}) => money(settled, currency), kind: 'number'},
  {head: 'Net', cell: ({net, currency}) => money(net, currency), kind: 'number'},
];

const Moved = ({rows}) => html`
  <p class="small">What came in, whatever became of it, and what went back on that day, by refunds and by payments that were sent back: compare it with your provider's statement.</p>
  ${rows.length ? html`<${Table} caption="Money by day" columns=${movedColumns} rows=${rows} keyOf=${row => `${row.day} ${row.provider} ${row.currency}`} />`
                : html`<${Empty} title="No money has come in yet" />`}`;

export function AllMoney() {
  const {answer, problem, reload} = useLoaded(`/v1/operate/money?offset=${minutes()}`);
  if (!answer) return html`<${Refusal} problem=${problem} again=${reload} />`;
  return html`<section><h2>Money by day</h2><${Moved} rows=${answer.money} /></section>`;
}

export function Totals({sale}) {
  const loaded = useLoaded(pathOfSale(sale.name, `/totals?offset=${minutes()}`));
  const {answer, problem, reload} = loaded;
  if (!answer) return problem ? html`<${Refusal} problem=${problem} again=${reload} />` : html`<${Waiting} />`;
  const {days, currency} = answer;
  const rows = new Map();
  for (const {day, state, ...figures} of days) rows.set(day, {...(rows.get(day) ?? {day}), [state]: figures});
  const worth = (amount, units) => (currency ? money(amount, currency) : some(units, 'unit'));
  const shown = figures => (!figures ? '–'
    : html`<span>${worth(figures.amount, figures.units)}</span> <span>(${count(figures.orders)})</span>${
      figures.returned > 0 && html` <span>${worth(figures.returned_amount, figures.returned)} back</span>`}`);
  const columns = [{head: 'Day', cell: ({day}) => day, kind: 'fixed'}, ...states.map(state => ({head: words(state), cell: row => shown(row[state]), kind: 'number parts'}))];
  return html`
    ${currency && html`<${Moved} rows=${answer.money} />`}
    <p class="small">Price of the units that orders have, and how many orders, by the day on which they were issued.</p>
    ${rows.size ? html`<${Table} caption="Money by day and state" columns=${columns} rows=${[...rows.values()]} keyOf=${row => row.day} />`
                : html`<${Empty} title="There are no orders yet" />`}
    <${Age} of=${loaded} />`;
}

// Dead letters: orders that the database refused. Each is tried again, or settled for good.

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
        <${Facts} kind="fields" rows=${[['entry', entry], ...Object.entries(fields ?? {})]} />
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
