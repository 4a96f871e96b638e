// All sales at a glance, those first that need somebody.
import {html, useState} from '../vendor/preact.js';
import {clock, count, moment, partsOf, rate, some} from '../lib/format.js';
import {historyOf} from '../lib/history.js';
import {linkTo} from '../lib/route.js';
import {Meter, Strip} from '../parts/bars.js';
import {Spark} from '../parts/chart.js';
import {Title} from '../parts/frame.js';
import {Empty, StateBadge} from '../parts/notice.js';
import {Facts} from '../parts/table.js';

/** What an operator should look at: [words, part of the sale's pages, how many]. */
export function needs({trouble, last: {dead, messages, refunds_failing, payments}}) {
  return [
    trouble && [trouble, '', 1],
    dead > 0 && [some(dead, 'dead letter'), 'letters', dead],
    messages?.dead > 0 && [some(messages.dead, 'message') + ' not delivered', 'messages', messages.dead],
    messages?.stopped > 0 && [`webhooks stopped by their receiver since ${moment(messages.stopped_since)}`, 'messages', messages.stopped],
    messages?.failing > 0 && [`webhooks fail since ${moment(messages.failing_since)}`, 'messages', messages.failing],
    refunds_failing > 0 && [some(refunds_failing, 'refund fails', 'refunds fail'), 'refunds', refunds_failing],
    payments?.flagged > 0 && [some(payments.flagged, 'payment') + ' to look at', 'payments', payments.flagged],
  ].filter(Boolean);
}

/** Of when it is, where that is not now. */
const asOf = at => at && ` (as of ${clock(at)})`;

/** What has to be looked at, then what is sold just now, then the others. */
const urgency = sale => 2 * needs(sale).length + (sale.state === 'open' ? 1 : 0);

const many = 12;  // from so many sales on one looks for a name

export function Overview({snapshot}) {
  const [wanted, want] = useState('');
  const {sales, process, last: {payments_of_no_sale: strays}} = snapshot;
  const shown = sales.filter(sale => sale.name.toLowerCase().includes(wanted.toLowerCase()))
    .toSorted((a, b) => urgency(b) - urgency(a));
  return html`
    <div class="heading">
      <${Title} document="Sales">Sales<//>
      ${sales.length > many && html`
        <label class="find"><span class="unseen">Find a sale</span>
          <input type="search" placeholder="Find a sale" value=${wanted} onInput=${event => want(event.target.value)} /></label>`}
    </div>
    ${process.trouble && html`<p class="refusal" role="alert"><strong>${process.trouble}</strong></p>`}
    ${strays > 0 && html`
      <p class="refusal" role="alert"><a href=${`${linkTo('payments')}?state=waiting`}>${some(strays, 'payment')} of sales that nobody knows${asOf(snapshot.last_at)}</a></p>`}
    <${Totals} sales=${sales} strays=${strays ?? 0} />
    ${sales.length === 0 && html`<${NoSales} />`}
    ${sales.length > 0 && shown.length === 0 && html`<${Empty} title=${`No sale${snapshot.truncated ? ' that is shown' : ''} has “${wanted}” in its name`} />`}
    <ul class="sales">${shown.map(sale => html`<${Card} key=${sale.name} sale=${sale} />`)}</ul>
    ${snapshot.not_served?.length > 0 && html`
      <details class="small"><summary>${some(snapshot.not_served.length, 'sale')} of this store or database not served here</summary>
        <ul>${snapshot.not_served.map(({sale, why}) => html`<li key=${sale}><b>${sale}</b>: ${why}</li>`)}</ul></details>`}
    ${snapshot.truncated && html`<p class="small">${count(sales.length)} of ${count(snapshot.sales_in_all)} sales are shown. The others are asked for at <code>/v1/operate</code>.</p>`}`;
}

/** What is over is not to be sold any more; its money may need somebody still. */
function Totals({sales, strays}) {
  const sum = (of, over = ['archived']) => sales.reduce((all, sale) => all + (over.includes(sale.state) ? 0 : of(sale) ?? 0), 0);
  return html`<${Facts} kind="totals" rows=${[
    ['admitted a second', rate(sum(sale => sale.admitted_per_s))],
    ['units left', count(sum(sale => sale.left, ['archived', 'closed']))],
    ['orders', count(sum(sale => sale.orders))],
    ['waiting for their turn', count(sum(sale => sale.room?.waiting))],
    ['to look at', count(strays + sum(sale => needs(sale).reduce((all, [, , n]) => all + n, 0), []))]]} />`;
}

function Card({sale}) {
  const troubles = needs(sale);
  return html`
    <li class=${`card sale-card ${troubles.length ? 'needy' : ''}`}>
      <div class="row">
        <h2><a href=${linkTo('sales', sale.name)}>${sale.name}</a></h2><${StateBadge} state=${sale.state} />
      </div>
      <p class="figure"><b>${count(sale.left)}</b> <span>left of ${count(sale.stock)}</span></p>
      <${Meter} label=${`Left of ${sale.name}`} value=${sale.left} max=${sale.stock} />
      <div class="row rates">
        <span><b>${rate(sale.admitted_per_s)}</b> admitted/s</span>
        <${Spark} values=${historyOf(sale.name).admitted} />
      </div>
      ${sale.by_state && html`<${Strip} kind="thin" parts=${partsOf(sale)} />`}
      <p class="small">${some(sale.orders, 'order')}${sale.by_state && sale.price && ` · ${count(sale.by_state.paid)} paid`}
        ${sale.room && ` · ${count(sale.room.waiting)} in the queue`}</p>
      ${troubles.length > 0 && html`
        <ul class="needs">${troubles.map(([words, part]) => html`
          <li key=${words}><a href=${linkTo('sales', sale.name, ...(part ? [part] : []))}>${words}${part && asOf(sale.last_at)}</a></li>`)}</ul>`}
    </li>`;
}

const NoSales = () => html`
  <${Empty} title="There is no sale yet">
    Begin the service with one, <code>sluice serve --sale tea=100</code>, or give it a file of sales by <code>--sales</code>.
    It appears here by itself.
  <//>`;
