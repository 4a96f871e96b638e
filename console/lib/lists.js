// What is asked for beside snapshots: page by page, or as a whole. It is asked again with them, as the database says something
// new every two seconds; not while a dialog is open, which is about what was seen.
import {useCallback, useEffect, useRef, useState} from '../vendor/preact.js';
import {get} from './api.js';
import {live} from './live.js';
import {useSignal} from './signal.js';

const every = 2000;
const nothing = {answer: null, problem: null, busy: false, at: 0};
const isDeciding = () => document.querySelector('dialog[open]');

/** `bring` gets what was there before and what load() was given; null is no answer. Another `path` is another question. */
function useFollowed(path, bring) {
  const [state, set] = useState(nothing);
  const {snapshot} = useSignal(live);
  const it = useRef({asked: 0, next: 0}).current;  // an answer that comes late is not shown for another question
  it.state = state;
  const load = useCallback(async (how, is_quiet) => {
    const mine = ++it.asked;
    const began = performance.now();
    const settle = members => {
      if (mine !== it.asked) return;
      it.next = performance.now() + Math.max(every, 4 * (performance.now() - began));
      if (!is_quiet || !isDeciding()) set(old => ({...old, busy: false, ...members}));
    };
    it.next = Infinity;
    if (!is_quiet) set(old => ({...old, busy: true, problem: null}));
    try {
      const answer = await bring(it.state.answer, how);
      settle({answer, problem: null, at: Date.now()});
      return answer;
    } catch (problem) {
      settle({problem});
    }
  }, [path]);
  useEffect(() => {
    it.state = nothing;
    set(nothing);
    load();
    return () => { ++it.asked; };
  }, [load]);
  useEffect(() => {
    const isTooLong = it.state.answer?.rows?.length > most;  // what was turned to would be gone
    if (performance.now() >= it.next && !isDeciding() && !isTooLong) load(undefined, true);
  }, [snapshot?.now]);
  return {...state, reload: () => load(), load};
}

const page = 50;
const most = 500;

/** A list in pages; `members` is the name of its rows in an answer. What was turned to stays. */
export function usePages(path, members) {
  const mark = path.includes('?') ? '&' : '?';
  const {answer, load, ...state} = useFollowed(path, async (old, after) => {
    const shown = after ? page : Math.min(most, Math.max(page, old?.rows.length ?? 0));
    const {[members]: rows, next = null} = await get(`${path}${mark}most=${shown}${after ? `&after=${encodeURIComponent(after)}` : ''}`);
    return {rows: after ? [...old.rows, ...rows] : rows, next};
  });
  return {...state, rows: answer?.rows, next: answer?.next, more: () => load(answer.next)};
}

/** What `path` answers. */
export const useLoaded = path => useFollowed(path, async () => ({...await get(path), at: Date.now()}));
