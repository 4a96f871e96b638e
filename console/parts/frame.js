// What stands around every view: the name, the ways, how the connection is.
import {html, useEffect, useRef, useState} from '../vendor/preact.js';
import {clock, duration, some} from '../lib/format.js';
import {announcement, connect, logOut} from '../lib/live.js';
import {linkTo} from '../lib/route.js';
import {useSignal} from '../lib/signal.js';

const ways = [['Sales', 'sales'], ['Payments', 'payments'], ['Locks', 'locks'], ['Numbers', 'numbers'], ['Proxies', 'proxies'], ['Journal', 'journal']];

export function Frame({here, state, children}) {
  const main = useRef(null);
  const skip = event => {
    event.preventDefault();  // the part behind '#' names the view
    main.current.focus();
  };
  return html`
    <a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href=${linkTo()}><img src="/console/icon.svg" alt="" width="22" height="22" />Sluice</a>
      ${state.session && html`
        <nav aria-label="Console">
          ${ways.map(([name, way]) => html`
            <a key=${way} href=${linkTo(way)} aria-current=${here === way ? 'page' : undefined}>${name}</a>`)}
        </nav>
        <${Connection} state=${state} />`}
    </header>
    ${state.phase === 'lost' && html`<${Lost} state=${state} />`}
    <main id="content" class=${`page ${state.phase === 'lost' ? 'stale' : ''}`} tabindex="-1" ref=${main}>${children}</main>
    ${state.snapshot && html`<${Process} process=${state.snapshot.process} session=${state.session} />`}
    <${Announcer} />`;
}

function Connection({state}) {
  const is_live = state.phase === 'live';
  return html`
    <div class="connection">
      <span class=${`pulse ${is_live ? 'on' : ''}`}>
        ${is_live ? html`<span class="wide-only">live </span>${clock(state.snapshot.now)}` : 'not connected'}</span>
      <span class="operator">${state.session.operator}</span>
      ${!state.session.open && html`<button type="button" class="plain" onClick=${logOut}>Log out</button>`}
    </div>`;
}

function Lost({state}) {
  const {snapshot, problem} = state;
  return html`
    <div class="banner" role="alert">
      <strong>${snapshot ? 'Connection lost.' : 'The service cannot be reached.'}</strong>
      <span>${snapshot && `These are the figures of ${clock(snapshot.now)}. `}
        ${problem?.status ? `${problem.title}. ` : ''}It is tried again every few seconds.</span>
      <button type="button" onClick=${connect}>Try now</button>
    </div>`;
}

function Process({process, session}) {
  return html`
    <footer>
      <span>${process.name}</span>
      <span>up ${duration(process.uptime_s * 1000)}</span>
      <span>${some(process.connections, 'connection')}</span>
      <span>${process.requests_per_s.toFixed(1)} requests/s</span>
      ${session && html`<span>Sluice ${session.version}</span>`}
    </footer>`;
}

const shownFor = 6000;

/** What has changed, for those who see it and for those who hear it. */
function Announcer() {
  const text = useSignal(announcement);
  useEffect(() => {
    const timer = text && setTimeout(() => announcement.set(''), shownFor);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<div role="status" aria-live="polite">${text && html`<p class="toast">${text}</p>`}</div>`;
}

/** Where to read on when what had the focus is gone. */
export const focusTitle = () => document.querySelector('main h1')?.focus({preventScroll: true});

/** The heading of a view. Whoever comes by a link of the page begins to read here. */
export function Title({children, document: name}) {
  const heading = useRef(null);
  const [first] = useState(() => performance.now() < 3000 && document.activeElement === document.body);
  useEffect(() => {
    document.title = `${name} – Sluice`;
    if (!first) heading.current.focus({preventScroll: true});
    for (const here of document.querySelectorAll('nav [aria-current]')) here.scrollIntoView({block: 'nearest', inline: 'nearest'});
  }, [name]);
  return html`<h1 tabindex="-1" ref=${heading}>${children}</h1>`;
}
