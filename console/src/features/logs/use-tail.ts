// Requests of a site as they end: read from a stream for as long as the component is there, and anew when the filters change.
import { logTail, type TailLine } from '@contract/resources/log-tail.ts';
import { onScopeDispose, ref, shallowRef, type WatchSource, watch } from 'vue';
import { rpcPath } from '@/shared/api/call.ts';
import type { CallError } from '@/shared/api/call-error.ts';
import { refusalOf } from '@/shared/api/request.ts';
import { pauseBefore } from '@/shared/live/backoff.ts';
import { readStream } from '@/shared/live/read-stream.ts';
import type { LogRow } from './use-log-rows.ts';

/** Rows that are kept: with more, tables become slow. */
export const TAIL_KEPT = 300;
/** Rows are shown together at this pace: each by itself would redraw the table for it. */
const PACE_MS = 200;

export function useTail(input: WatchSource<object>) {
  /** The latest first. */
  const rows = shallowRef<readonly LogRow[]>([]);
  const state = ref<'connecting' | 'live'>('connecting');
  const paused = ref(false);
  /** Rows that came while paused. */
  const held = ref(0);
  const dropped = ref(0);
  /** A refusal: it is not tried again by itself. */
  const error = shallowRef<CallError | null>(null);
  let waiting: LogRow[] = [];
  let abort = new AbortController();
  let pace = 0;
  let again = 0;
  let last: object = {};

  function show(): void {
    pace = 0;
    if (paused.value) {
      held.value = waiting.length;
      return;
    }
    rows.value = [...waiting, ...rows.value].slice(0, TAIL_KEPT);
    waiting = [];
    held.value = 0;
  }

  function take(line: TailLine): boolean {
    if (line.type === 'start') state.value = 'live';
    else if (line.type === 'pause') state.value = 'connecting';
    else if (line.type === 'rows') {
      state.value = 'live';
      dropped.value += line.dropped;
      waiting = [...line.entries.toReversed(), ...waiting].slice(0, TAIL_KEPT);
      pace ||= window.setTimeout(show, PACE_MS);
    }
    return line.type !== 'end';
  }

  async function read(asked: object, mine: AbortController): Promise<void> {
    for (let attempt = 0; !mine.signal.aborted; attempt++) {
      state.value = 'connecting';
      const stream = new AbortController();
      const stop = () => stream.abort();
      mine.signal.addEventListener('abort', stop, { once: true });
      const response = await readStream(rpcPath(logTail.tail), asked, {
        abort: stream,
        take(line) {
          attempt = 0;
          return !mine.signal.aborted && take(line as TailLine);
        },
      }).catch(() => null);
      stream.abort();
      mine.signal.removeEventListener('abort', stop);
      if (mine.signal.aborted) return;
      if (response && response.status >= 400 && response.status < 500) {
        error.value = await refusalOf(response);
        return;
      }
      await new Promise((resolve) => {
        again = window.setTimeout(resolve, pauseBefore(attempt));
      });
    }
  }

  function start(): void {
    abort.abort();
    abort = new AbortController();
    window.clearTimeout(again);
    error.value = null;
    void read(last, abort);
  }

  watch(
    input,
    (now) => {
      last = now;
      rows.value = [];
      waiting = [];
      held.value = 0;
      dropped.value = 0;
      start();
    },
    { immediate: true },
  );
  watch(paused, show);
  onScopeDispose(() => {
    abort.abort();
    window.clearTimeout(again);
    window.clearTimeout(pace);
  });
  return { rows, state, paused, held, dropped, error, retry: start };
}
