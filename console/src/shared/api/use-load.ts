// Data of a page: loaded now, again when its inputs change, when live updates say so, and on a beat where asked. What is shown stays until new
// data is there; answers that arrive out of order are ignored.
import { onScopeDispose, type Ref, ref, type ShallowRef, shallowRef, type WatchSource, watch } from 'vue';
import { liveState } from '@/shared/live/live.ts';
import { type LiveFilters, useLive } from '@/shared/live/use-live.ts';
import { asCallError, type CallError } from './call-error.ts';

/** Below this no one needs to know that something is loading. */
const SLOW_AFTER_MS = 300;

/** What live updates miss, if anything, is seen after this time; while there are none, pages ask more often. */
const SAFETY_MS = 60_000;
const WITHOUT_LIVE_MS = 15_000;
const GAUGES_MS = 10_000;

export interface LoadOptions {
  /** Loads again when one of these changes. */
  watch?: WatchSource | WatchSource[];
  /** Loads again this often while the page is visible. */
  everyMs?: number;
  /** Loads again when live updates tell of one of these, while the page is visible. */
  live?: LiveFilters;
  /** Least time between two loads for that reason; default a second. */
  liveGapMs?: number;
  /** With `live`: figures of nodes are shown, which move with every heartbeat. */
  gauges?: boolean;
  /** Default true. */
  immediate?: boolean;
}

export interface Loaded<T> {
  data: ShallowRef<T | undefined>;
  error: ShallowRef<CallError | null>;
  loading: Ref<boolean>;
  /** Loading for longer than 300 ms. */
  slow: Ref<boolean>;
  reload(): Promise<void>;
}

/** Runs `load` and keeps its last answer. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, options: LoadOptions = {}): Loaded<T> {
  const data = shallowRef<T>();
  const error = shallowRef<CallError | null>(null);
  const loading = ref(false);
  const slow = ref(false);
  let current: AbortController | null = null;
  let slowTimer = 0;
  let beat = 0;
  let again = false;

  let latest: Promise<void> | null = null;

  /** Settles with the newest load: one that was overtaken has nothing to say. */
  async function reload(): Promise<void> {
    let mine = loadOnce();
    latest = mine;
    await mine;
    while (latest !== mine) {
      mine = latest;
      await mine;
    }
  }

  async function loadOnce(): Promise<void> {
    current?.abort();
    const mine = new AbortController();
    current = mine;
    again = false;
    loading.value = true;
    window.clearTimeout(slowTimer);
    slowTimer = window.setTimeout(() => {
      slow.value = true;
    }, SLOW_AFTER_MS);
    try {
      const answer = await load(mine.signal);
      if (current !== mine) return;
      data.value = answer;
      error.value = null;
    } catch (thrown) {
      if (current !== mine) return;
      error.value = asCallError(thrown);
    }
    window.clearTimeout(slowTimer);
    loading.value = false;
    slow.value = false;
    schedule();
    if (again) void reload();
  }

  /** A load under way is not given up for this: one that takes long would never end. */
  function refresh(): void {
    if (loading.value) again = true;
    else void reload();
  }

  function pause(): number | undefined {
    if (!options.live) return options.everyMs;
    return Math.min(liveState.value === 'live' ? SAFETY_MS : WITHOUT_LIVE_MS, options.everyMs ?? SAFETY_MS);
  }

  function schedule(): void {
    window.clearTimeout(beat);
    const ms = pause();
    if (ms) beat = window.setTimeout(tick, ms);
  }

  function tick(): void {
    if (document.hidden) schedule();
    else void reload();
  }

  if (options.live) {
    useLive(options.live, refresh, { gapMs: options.liveGapMs });
    if (options.gauges) useLive(['gauges'], refresh, { gapMs: GAUGES_MS });
    watch(liveState, schedule);
  }
  if (options.watch) watch(options.watch, () => void reload());
  onScopeDispose(() => {
    current?.abort();
    current = null;
    window.clearTimeout(slowTimer);
    window.clearTimeout(beat);
  });
  if (options.immediate !== false) void reload();
  return { data, error, loading, slow, reload };
}
