// What is sent for an order, messages and refunds, as rows: why it failed, and a button that sends it at once.
import {html} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {count, moment, money, some, words} from '../lib/format.js';
import {Action} from './action.js';
import {Confirm} from './confirm.js';
import {OrderLink} from './table.js';

/** `id` of what is sent again; `then` is told when it is due. What the receiver had stopped goes out with it. */
const Resend = ({sale, kind, id, then}) => html`
  <${Action} label="Send now" about=${`${kind} ${id}`} done=${answer => (answer?.replayed > 1 ? `${some(answer.replayed, 'message')} on the way` : 'on its way')}
    work=${async () => {
      const answer = await post(pathOfSale(sale, `/${kind}/${encodeURIComponent(id)}/resend`));
      await then();
      return answer;
    }} />`;

const tries = (n, next) => (n > 0 && next ? html`<div><span>${count(n)},</span> <span>next ${moment(next)}</span></div>` : count(n));
const idOf = row => row.id ?? `${row.order}:${row.seq}`;

export const messageColumns = (sale, then) => [
  {head: 'Order', cell: ({order, data}) => html`<${OrderLink} sale=${sale} number=${order === '0' ? '' : data.order ?? order} />`, kind: 'fixed'},
  {head: 'Message', cell: ({type, seq, data}) => `${type} (${seq})${data.amount ? `, ${money(data.amount, data.currency)}` : ''}`, kind: 'wide'},
  {head: 'Since', cell: ({at}) => moment(at), kind: 'fixed'},
  {head: 'State', cell: ({state, note}) => (state === 'due' && note ? 'tried again' : state)},
  {head: 'Attempts', cell: row => tries(row.attempts, row.note && row.next_at), kind: 'parts'},
  {head: 'Why', cell: ({note}) => note || '–', kind: 'wide'},
  {head: 'Send', cell: row => row.state !== 'done' && html`<${Resend} sale=${sale} kind="messages" id=${idOf(row)} then=${then} />`},
];

export const refundColumns = (sale, then) => [
  {head: 'Refund', cell: ({key}) => key, kind: 'wide'},
  {head: 'Order', cell: ({order}) => html`<${OrderLink} sale=${sale} number=${order} />`, kind: 'fixed'},
  {head: 'Amount', cell: ({amount, currency}) => money(amount, currency), kind: 'number'},
  {head: 'Provider', cell: ({provider}) => provider, kind: 'fixed'},
  {head: 'State', cell: ({state}) => (state === 'asked' ? 'to do' : words(state)), kind: 'fixed'},
  {head: 'Since', cell: ({since, done_at}) => (done_at ? html`<div><span>${moment(since)},</span> <span>done ${moment(done_at)}</span></div>` : html`<span>${moment(since)}</span>`), kind: 'parts'},
  {head: 'Failed', cell: row => tries(row.failed, row.next_at), kind: 'parts'},
  {head: 'Why', cell: ({note}) => note || '–', kind: 'wide'},
  {head: 'Send', cell: row => row.state === 'asked' && html`<${OfRefund} sale=${sale} refund=${row} id=${row.id ?? row.key.replace('.', ':')} then=${then} />`},
];

const OfRefund = ({sale, refund, id, then}) => html`
  <div class="row wrap">
    <${Resend} sale=${sale} kind="refunds" id=${id} then=${then} />
    ${refund.failed > 0 && html`
      <${Confirm} of=${refund} may=${({state}) => state === 'asked'} newest=${({members}) => members.refund}
        label="Settle …" about=${`refund ${id}`} title=${`Settle refund ${refund.key}`} name=${sale} kind="" done="the refund is settled"
        fields=${[{name: 'reason', label: 'How the money went back (it stands in the journal)', required: true, maxlength: 1000}]}
        work=${(body, {state}) => post(pathOfSale(sale, `/refunds/${encodeURIComponent(id)}/settle`), body, {tag: `"${state}"`}).then(then)}>
        ${money(refund.amount, refund.currency)} for order ${refund.order}. The money went back in another way: it is sent no more, and the order goes on as if the provider had taken it.
      <//>`}
  </div>`;
