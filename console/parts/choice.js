// One of some words, which a list is narrowed to.
import {html} from '../vendor/preact.js';
import {words} from '../lib/format.js';

/** choices: [[value, label]], or values that are their own labels. */
export const Choice = ({label, value, choices, choose}) => html`
  <label class="field"><span>${label}</span>
    <select value=${value} onChange=${event => choose(event.target.value)}>
      ${choices.map(choice => {
        const [name, shown] = Array.isArray(choice) ? choice : [choice, words(choice)];
        return html`<option key=${name} value=${name} selected=${name === value}>${shown}</option>`;
      })}
    </select></label>`;
