// The waiting room before a sale: how it goes, and how fast it lets in.
import {html} from '../vendor/preact.js';
import {pathOfRoom, post} from '../lib/api.js';
import {clock, count, duration, rate, some, words} from '../lib/format.js';
import {Action, NumberAction} from '../parts/action.js';
import {Meter} from '../parts/bars.js';
import {Confirm} from '../parts/confirm.js';
import {Badge} from '../parts/notice.js';

const every = ms => (!ms || ms === 1000 ? 'a second' : `each ${duration(ms)}`);

export function Room({sale}) {
  const {name} = sale;
  const {room} = sale.last;  // while the store is asked for it, too: an answer is told here
  const ask = (way, body) => post(pathOfRoom(name, way), body);
  return html`
    <section class="card">
      <div class="row"><h2>Waiting room</h2>
        ${!sale.room && html`<${Badge} kind="warn">as of ${clock(sale.last_at)}<//>`}
        <${Badge} kind=${room.paused ? 'warn' : room.state === 'open' ? 'good' : 'plain'}>${room.paused ? 'paused' : words(room.state)}<//></div>
      ${room.state === 'sold_out' && sale.left > 0 && html`
        <div class="refusal" role="alert"><strong>Nobody is let in: the room believes that nothing is left, and the sale has ${some(sale.left, 'unit')}.</strong>
          ${' '}<${Action} label="Tell it what is left" work=${() => ask('/units', {units: sale.left})} done="It goes on" /></div>`}
      <p class="figure"><b>${count(room.waiting)}</b> <span>waiting${room.waiting > 0 && (room.eta_s ?? null) !== null && `, the last for about ${duration(room.eta_s * 1000)}`}</span></p>
      <p class="small">${count(room.inside_now)} of ${count(room.inside)} inside, ${rate(room.in_per_s)} come in a second</p>
      <${Meter} kind="thin" label="Inside" value=${room.inside_now} max=${room.inside} />
      ${room.state !== 'closed' && html`
        <${NumberAction} label="Rate" value=${room.rate} unit=${every(room.interval_ms)} least="1" done="Rate set"
          work=${value => ask('/rate', {rate: value})} />
        <${NumberAction} label="Left to sell" value=${room.units_left ?? ''} unit="units" done="Units set" work=${value => ask('/units', {units: value})} />
        <div class="row wrap">
          <${Action} label=${room.paused ? 'Resume' : 'Pause'} about="the waiting room" done=${room.paused ? 'Resumed' : 'Paused'}
            work=${() => ask(room.paused ? '/resume' : '/pause')} />
          <${Confirm} label="Close room …" title=${`Close the waiting room of ${name}`} name=${name} done="The waiting room is closed"
            work=${body => ask('/close', body)}>
            Those who wait are told that it is over, and nobody comes in any more. It cannot be opened again.
          <//>
        </div>`}
    </section>`;
}
