// What is sent for an order, messages and refunds, as rows: why it failed, and a button that sends it at once.
import {html} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {moment, money, words} from '../lib/format.js';
import {Action} from './action.js';
import {OrderLink} from './order_link.js';

/** `id` of what is sent again; `then` is told when it is due. */
const Resend = ({sale, kind, id, then}) => html`
  <${Action} label="Send now" about=${`${kind} ${id}`} done="on its way"
    work=${() => post(pathOfSale(sale, `/${kind}/${encodeURIComponent(id)}/resend`)).then(then)} />`;

const idOf = row => row.id ?? `${row.order}:${row.seq}`;

export const messageColumns = (sale, then) => [
  {head: 'Order', cell: ({order}) => html`<${OrderLink} sale=${sale} number=${order === '0' ? '' : order} />`, kind: 'wide'},
  {head: 'Message', cell: ({type, seq}) => `${type} (${seq})`, kind: 'wide'},
  {head: 'Since', cell: ({at}) => moment(at)},
  {head: 'State', cell: ({state, note}) => (state === 'due' && note ? 'tried again' : state)},
  {head: 'Attempts', cell: ({attempts}) => attempts, kind: 'number'},
  {head: 'Why', cell: ({note}) => note || '–', kind: 'wide'},
  {head: 'Send', cell: row => row.state !== 'done' && html`<${Resend} sale=${sale} kind="messages" id=${idOf(row)} then=${then} />`},
];

export const refundColumns = (sale, then) => [
  {head: 'Refund', cell: ({key}) => key, kind: 'wide'},
  {head: 'Order', cell: ({order}) => html`<${OrderLink} sale=${sale} number=${order} />`, kind: 'wide'},
  {head: 'Amount', cell: ({amount, currency}) => money(amount, currency), kind: 'number'},
  {head: 'Provider', cell: ({provider}) => provider},
  {head: 'State', cell: ({state}) => (state === 'asked' ? 'to do' : words(state))},
  {head: 'Failed', cell: ({failed}) => failed, kind: 'number'},
  {head: 'Why', cell: ({note}) => note || '–', kind: 'wide'},
  {head: 'Send', cell: row => row.state === 'asked' && html`<${Resend} sale=${sale} kind="refunds" id=${row.id ?? row.key.replace('.', ':')} then=${then} />`},
];
