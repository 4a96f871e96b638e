// A value that views follow. All state of the page that outlives a view is in signals.
import {useEffect, useState} from '../vendor/preact.js';

export function signal(value) {
  const followers = new Set();
  return {
    get value() { return value; },
    set(next) {
      value = next;
      for (const follower of [...followers]) follower(next);
    },
    merge(members) { this.set({...value, ...members}); },
    follow(follower) {
      followers.add(follower);
      return () => followers.delete(follower);
    },
  };
}

/** The value of a signal; the view that calls it is drawn again when it changes. */
export function useSignal(source) {
  const [value, set] = useState(source.value);
  useEffect(() => {
    set(source.value);  // it may have changed since the view was drawn
    return source.follow(next => set(next));
  }, [source]);
  return value;
}
