// Runs something when what it shows has changed: at once, then no more often than it asks for, and only while the page
// can be seen; what was missed meanwhile is one run on return.
import { onScopeDispose } from 'vue';
import { wishLive } from './live.ts';
import type { LiveFilter } from './topics.ts';

export interface LiveOptions {
  /** Least time between two runs. */
  gapMs?: number;
}

export type LiveFilters = readonly LiveFilter[] | (() => readonly LiveFilter[]);

const GAP_MS = 1_000;

/** As {@link useLive} outside of components; answers what ends it. */
export function followLive(filters: LiveFilters, run: () => void, { gapMs = GAP_MS }: LiveOptions = {}): () => void {
  let ranAt = Number.NEGATIVE_INFINITY;
  let timer = 0;
  let missed = false;
  const now = () => {
    timer = 0;
    if (document.hidden) {
      missed = true;
      return;
    }
    missed = false;
    ranAt = performance.now();
    run();
  };
  const onVisible = () => {
    if (missed && !document.hidden && !timer) now();
  };
  const forget = wishLive({
    filters: typeof filters === 'function' ? filters : () => filters,
    run() {
      if (timer) return;
      const left = ranAt + gapMs - performance.now();
      if (left <= 0) now();
      else timer = window.setTimeout(now, left);
    },
  });
  document.addEventListener('visibilitychange', onVisible);
  return () => {
    forget();
    window.clearTimeout(timer);
    document.removeEventListener('visibilitychange', onVisible);
  };
}

/** Calls `run` when one of these changed: `['nodes', 'revisions:<cluster>']`, or a function that answers such a list. */
export function useLive(filters: LiveFilters, run: () => void, options: LiveOptions = {}): void {
  onScopeDispose(followLive(filters, run, options));
}
