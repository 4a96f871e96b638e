// Proof to the unit, on demand.
import {html, useState} from '../vendor/preact.js';
import {pathOfSale, post} from '../lib/api.js';
import {count, duration} from '../lib/format.js';
import {mayAct} from '../lib/live.js';
import {useAction} from '../parts/action.js';
import {Badge, Refusal} from '../parts/notice.js';

export function Audit({sale}) {
  const [report, keep] = useState(null);
  const action = useAction(async () => {
    const found = await post(pathOfSale(sale.name, '/audit'));
    keep(found);
    return found;
  }, found => (found.sound ? 'Audit: sound' : 'Audit: not sound'));
  return html`
      <h2>Audit</h2>
      <p class="small">Compares each unit and each order of the store with the database. Buyers do not wait for it.</p>
      ${mayAct() && html`<p><button type="button" aria-disabled=${action.busy} onClick=${() => action.run()}>
        ${action.busy ? 'Comparing …' : 'Audit now'}</button></p>`}
      <${Refusal} problem=${action.problem} />
      ${report && html`
        <p><${Badge} kind=${report.sound ? 'good' : 'bad'}>${report.sound ? 'sound' : 'not sound'}<//>
          ${' '}${count(report.orders)} orders in ${duration(report.took_ms)}</p>`}
      ${report?.findings.length > 0 && html`<ul class="findings">${report.findings.map(text => html`<li key=${text}>${text}</li>`)}</ul>`}`;
}
