// Data of a page: loaded now, again when its inputs change, and on a beat where asked. What is shown stays until new
// data is there; answers that arrive out of order are ignored.
import { onScopeDispose, type Ref, ref, type ShallowRef, shallowRef, type WatchSource, watch } from 'vue';
import { asCallError, type CallError } from './call-error.ts';

/** Below this no one needs to know that something is loading. */
const SLOW_AFTER_MS = 300;

export interface LoadOptions {
  /** Loads again when one of these changes. */
  watch?: WatchSource | WatchSource[];
  /** Loads again this often while the page is visible. */
  everyMs?: number;
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

  async function reload(): Promise<void> {
    current?.abort();
    const mine = new AbortController();
    current = mine;
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
  }

  function schedule(): void {
    window.clearTimeout(beat);
    if (options.everyMs) beat = window.setTimeout(tick, options.everyMs);
  }

  function tick(): void {
    if (document.hidden) schedule();
    else void reload();
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
