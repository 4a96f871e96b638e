// What the store and its proxies have beside sales: locks, numbers, rings; and who did what.
import {html} from '../vendor/preact.js';
import {count, duration, moment, money, share, words} from '../lib/format.js';
import {useLoaded, usePages} from '../lib/lists.js';
import {Title} from '../parts/frame.js';
import {Age, Badge, Empty, Refusal, Waiting} from '../parts/notice.js';
import {OrderLink, Pages, Table} from '../parts/table.js';

/** A list that is asked for again and again. A service that does not have it at all has none of it. */
function Polled({title, path, members, empty, children}) {
  const loaded = useLoaded(path);
  const {answer, problem} = loaded;
  const rows = answer?.[members] ?? (problem?.status === 404 ? [] : null);
  return html`
    <${Title} document=${title}>${title}<//>
    ${!(rows?.length === 0) && html`<${Refusal} problem=${problem} />`}
    ${!rows && !problem && html`<${Waiting} />`}
    ${rows?.length === 0 && empty}
    ${rows?.length > 0 && children(rows)}
    <${Age} of=${loaded} />
    ${answer?.truncated && html`<p class="small">There are more than are shown.</p>`}`;
}

// Who holds which lock, and how many wait for it.

const lockColumns = [
  {head: 'Lock', cell: ({name}) => name, kind: 'wide'},
  {head: 'Kind', cell: ({kind}) => words(kind)},
  {head: 'Held by', kind: 'wide',
   cell: ({holders}) => holders.length ? html`<ul class="plain-list">${holders.map(({owner, left_ms}) => html`
     <li key=${owner}>${owner} <small>for ${duration(left_ms)} more</small></li>`)}</ul>` : 'nobody'},
  {head: 'Waiting', cell: ({waiting}) => count(waiting), kind: 'number'},
];

export const Locks = () => html`
  <${Polled} title="Locks" members="locks" path="/v1/operate/locks"
    empty=${html`<${Empty} title="No lock is held">Locks are here while somebody holds them, or waits for them.<//>`}>
    ${locks => html`<${Table} caption="Locks" columns=${lockColumns} rows=${locks} keyOf=${row => `${row.kind} ${row.name}`} />`}
  <//>`;

// Series of document numbers: the last one that was given, and how many are left of its period.

const seriesColumns = [
  {head: 'Series', cell: ({name}) => name, kind: 'wide'},
  {head: 'Period', cell: ({period}) => period},
  {head: 'Last number', cell: ({last}) => last, kind: 'number'},
  {head: 'Left', cell: ({left}) => count(left), kind: 'number'},
];

export const Numbers = () => html`
  <${Polled} title="Numbers" members="series" path="/v1/operate/numbers"
    empty=${html`<${Empty} title="No series has given a number yet">Programs draw numbers from series; a sale counts its orders itself.<//>`}>
    ${series => html`<${Table} caption="Series" columns=${seriesColumns} rows=${series} keyOf=${row => `${row.name} ${row.period}`} />`}
  <//>`;

// The rings of proxies: which server has which share of the keys.

const serverColumns = [
  {head: 'Server', cell: ({name}) => name, kind: 'wide'},
  {head: 'Address', cell: ({address}) => address, kind: 'wide'},
  {head: 'Weight', cell: ({weight}) => weight, kind: 'number'},
  {head: 'Share', cell: row => share(row.share), kind: 'number'},
  {head: 'State', cell: ({alive}) => html`<${Badge} kind=${alive ? 'good' : 'bad'}>${alive ? 'alive' : 'away'}<//>`},
];

export const Proxies = () => html`
  <${Polled} title="Proxies" members="proxies" path="/v1/operate/proxies"
    empty=${html`<${Empty} title="No proxy was named">Name those you run: <code>sluice serve --proxy http://10.0.0.9:22222</code><//>`}>
    ${proxies => proxies.map(proxy => html`<${Proxy} key=${proxy.url} proxy=${proxy} />`)}
  <//>`;

const Proxy = ({proxy: {url, reachable, why, pools}}) => html`
  <section class="card proxy">
    <div class="row"><h2>${url}</h2><${Badge} kind=${reachable ? 'good' : 'bad'}>${reachable ? 'reachable' : 'not reachable'}<//></div>
    ${why && html`<p class="reason">${why}</p>`}
    ${(pools ?? []).map(({name, servers}) => html`
      <h3 key=${`${name} name`}>${name}</h3>
      <${Table} key=${name} caption=${`Servers of ${name}`} columns=${serverColumns} rows=${servers} keyOf=${row => row.name} />`)}
  </section>`;

const journalColumns = [
  {head: 'At', cell: ({at}) => moment(at), kind: 'fixed'},
  {head: 'Operator', cell: ({operator}) => operator},
  {head: 'Action', cell: ({action}) => words(action)},
  {head: 'Of', cell: ({target, order, amount, currency}) => html`${target} ${order && html`<${OrderLink} sale=${target} number=${order} />`} ${amount ? money(amount, currency) : ''}`, kind: 'wide'},
  {head: 'Detail', cell: ({detail}) => detail || '–', kind: 'wide'},
  {head: 'Outcome', cell: ({outcome}) => (outcome.length > 20 ? outcome
    : html`<${Badge} kind=${outcome === 'done' ? 'good' : 'warn'}>${outcome === 'begun' ? 'not known' : outcome}<//>`), kind: 'wide'},
];

export function Journal() {
  const pages = usePages('/v1/operate/journal', 'entries');
  const empty = html`<${Empty} title="Nobody has done anything yet">Each action of an operator is written down here before it is done.<//>`;
  return html`
    <${Title} document="Journal">Journal<//>
    <${Pages} pages=${pages} empty=${empty}>
      ${rows => html`<${Table} caption="Journal" columns=${journalColumns} rows=${rows} keyOf=${row => row.id} />`}
    <//>`;
}
