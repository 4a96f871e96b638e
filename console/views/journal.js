// Who did what, the newest first.
import {html} from '../vendor/preact.js';
import {moment, money, words} from '../lib/format.js';
import {usePages} from '../lib/lists.js';
import {Title} from '../parts/frame.js';
import {Badge, Empty} from '../parts/notice.js';
import {OrderLink} from '../parts/table.js';
import {Pages, Table} from '../parts/table.js';

const columns = [
  {head: 'At', cell: ({at}) => html`<time datetime=${at}>${moment(at)}</time>`, kind: 'fixed'},
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
      ${rows => html`<${Table} caption="Journal" columns=${columns} rows=${rows} keyOf=${row => row.id} />`}
    <//>`;
}
