// Whether this browser reaches the console. A failed request or a stream that does not come back is a doubt; a small request
// settles it, and is repeated until the console responds again.
import { ref, watch } from 'vue';
import { setContactHook } from '@/shared/api/request.ts';
import { serverNow } from '@/shared/api/server-clock.ts';
import { liveState, wakeLive } from '@/shared/live/live.ts';

const PROBE = '/healthz';
const PROBE_TIMEOUT_MS = 5000;
const PROBE_AGAIN_MS = 3000;
/** A stream that ends begins again at once where the console is there. */
const STREAM_AWAY_MS = 5000;

/** Time of the last response while the console cannot be reached, ISO 8601; null: it can. */
export const lostSince = ref<string | null>(null);
/** The console responds, but its live updates do not come. */
export const liveAway = ref(false);

let reachedAt = Date.now();
let probing = false;
let awayTimer = 0;

/** The console responded. */
function noteReached(): void {
  reachedAt = serverNow();
  if (lostSince.value === null) return;
  lostSince.value = null;
  if (liveState.value === 'connecting') wakeLive();
}

/** A request got no response of the console. */
function noteMissed(): void {
  if (!probing) void probe();
}

async function probe(): Promise<void> {
  probing = true;
  for (;;) {
    const there = await fetch(PROBE, { cache: 'no-store', signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (there) break;
    lostSince.value ??= new Date(reachedAt).toISOString();
    await new Promise((resolve) => setTimeout(resolve, PROBE_AGAIN_MS));
  }
  probing = false;
  noteReached();
}

/** Begins to watch requests, the stream and the browser's own word. */
export function watchConnection(): void {
  setContactHook((reached) => (reached ? noteReached() : noteMissed()));
  watch(liveState, (state, before) => {
    window.clearTimeout(awayTimer);
    if (state !== 'connecting') {
      liveAway.value = false;
      if (state === 'live') noteReached();
      return;
    }
    if (before === 'live') reachedAt = serverNow();
    awayTimer = window.setTimeout(() => {
      liveAway.value = true;
      noteMissed();
    }, STREAM_AWAY_MS);
  });
  window.addEventListener('offline', noteMissed);
}
