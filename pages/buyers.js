// What the page does by itself where scripts run. Without them it does the same by reloading.
'use strict';

(() => {
  let asking = 0;
  let looking = 0;

  // A language that a shop has added may be none that the browser knows.
  const in_words = (at) => {
    const how = {dateStyle: 'medium', timeStyle: 'medium'};
    try {
      return at.toLocaleString(document.documentElement.lang, how);
    } catch {
      return at.toLocaleString([], how);
    }
  };

  // Instants by the clock of this phone, and the time to the opening.
  const show_times = () => {
    for (const time of document.querySelectorAll('time[datetime]')) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) time.textContent = in_words(at);
    }
    const count = document.querySelector('[data-opens-in-ms]');
    if (!count) return;
    const opens = performance.now() + Number(count.dataset.opensInMs);
    const tick = () => {
      if (!count.isConnected) return;
      const left = Math.max(0, Math.ceil((opens - performance.now()) / 1000));
      const two = (number) => String(number).padStart(2, '0');
      count.textContent = left >= 86400
        ? count.dataset.days.replace('{days}', Math.floor(left / 86400)).replace('{hours}', Math.floor(left / 3600) % 24)
        : `${Math.floor(left / 3600)}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
      if (left > 0) setTimeout(tick, 250);
    };
    tick();
  };

  // A second click does no harm, and is not needed.
  const quiet_buttons = () => {
    for (const form of document.forms)
      form.addEventListener('submit', () => setTimeout(() => {
        for (const button of form.querySelectorAll('button')) button.disabled = true;
      }));
  };

  const later = (ms) => {
    clearTimeout(asking);
    asking = setTimeout(ask, ms);
  };

  // Asking keeps his place while he looks at the page. A window that he has left behind keeps it
  // from nobody: it asks when he comes back.
  const ask_when_seen = () => {
    if (document.visibilityState === 'visible') ask();
    else document.addEventListener('visibilitychange', ask_when_seen, {once: true});
  };

  const ask = async () => {
    try {
      const answer = await fetch(location.pathname, {credentials: 'same-origin'});
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const had_form = document.querySelector('form.buy');
      // The status alone is read out to who reads by ear, and only where it has changed.
      for (const id of ['status', 'rest']) {
        // What he has begun to type stays.
        if (id === 'rest' && had_form && page.querySelector('form.buy')) continue;
        const now = document.getElementById(id);
        const fresh = page.getElementById(id);
        if (now.textContent !== fresh.textContent || id === 'rest')
          now.replaceChildren(...fresh.childNodes);
      }
      for (const name of ['pollMs', 'seenPollMs'])
        document.querySelector('main').dataset[name] = page.querySelector('main').dataset[name] || '';
      document.title = page.title;
      begin();
      const form = document.querySelector('form.buy');
      if (form && !had_form) form.querySelector('button').focus();
    } catch {
      later(5000 + Math.random() * 5000);
    }
  };

  const begin = () => {
    show_times();
    quiet_buttons();
    const {pollMs, seenPollMs} = document.querySelector('main').dataset;
    clearTimeout(asking);
    clearTimeout(looking);
    document.removeEventListener('visibilitychange', ask_when_seen);
    if (Number(pollMs) > 0) later(Number(pollMs));
    if (Number(seenPollMs) > 0) looking = setTimeout(ask_when_seen, Number(seenPollMs));
  };

  addEventListener('pageshow', (event) => {
    // Back from another page: its buttons work again.
    if (!event.persisted) return;
    for (const button of document.querySelectorAll('button')) button.disabled = false;
  });
  begin();
})();
