// Lists that are asked for: page by page, or again and again.
import {useCallback, useEffect, useRef, useState} from '../vendor/preact.js';
import {get} from './api.js';

/** A list in pages; `members` is the name of its rows in an answer. When `version` changes it is asked for again. */
export function usePages(path, members, version) {
  const [state, set] = useState({rows: null, next: null, problem: null, busy: false});
  const asked = useRef(0);  // an answer that comes late is not shown for another question
  const load = useCallback(async after => {
    const mine = ++asked.current;
    set(old => ({...old, busy: true, problem: null}));
    const mark = path.includes('?') ? '&' : '?';
    try {
      const page = await get(`${path}${mark}most=50${after ? `&after=${encodeURIComponent(after)}` : ''}`);
      if (mine !== asked.current) return;
      set(old => ({
        rows: after ? [...(old.rows ?? []), ...page[members]] : page[members],
        next: page.next ?? null, problem: null, busy: false,
      }));
    } catch (problem) {
      if (mine === asked.current) set(old => ({...old, problem, busy: false}));
    }
  }, [path, members]);
  useEffect(() => {
    set({rows: null, next: null, problem: null, busy: false});
    load();
    return () => { ++asked.current; };
  }, [load]);
  useEffect(() => { if (asked.current > 1) load(); }, [version]);
  return {...state, reload: () => load(), more: () => load(state.next)};
}

/** What `path` answers, asked once, and again by reload(). */
export function useLoaded(path) {
  const [state, set] = useState({answer: null, problem: null});
  const asked = useRef(0);
  const load = useCallback(async () => {
    const mine = ++asked.current;
    await get(path).then(answer => mine === asked.current && set({answer, problem: null}),
                         problem => mine === asked.current && set(old => ({...old, problem})));
  }, [path]);
  useEffect(() => {
    set({answer: null, problem: null});
    load();
    return () => { ++asked.current; };
  }, [load]);
  return {...state, reload: load};
}

/** What `path` answers, asked again every `ms` while the page is seen. */
export function usePolled(path, ms = 3000) {
  const [state, set] = useState({answer: null, problem: null});
  useEffect(() => {
    let timer = 0;
    let gone = false;
    const look = async () => {
      if (!document.hidden)
        await get(path).then(answer => !gone && set({answer, problem: null}),
                             problem => !gone && set(old => ({...old, problem})));
      if (!gone) timer = setTimeout(look, ms);
    };
    look();
    return () => { gone = true; clearTimeout(timer); };
  }, [path, ms]);
  return state;
}
