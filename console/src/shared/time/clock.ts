// One clock for everything on the page that depends on the time: "3 minutes ago", countdowns, what has expired. It ticks
// once a second while a component uses it and the page is visible; a page that is shown again is right at once.
import { onScopeDispose, type Ref, readonly, ref } from 'vue';
import { serverNow } from '@/shared/api/server-clock.ts';

const EVERY_MS = 1000;
const now = ref(serverNow());
let users = 0;
let timer = 0;

function tick(): void {
  now.value = serverNow();
}

function run(): void {
  window.clearInterval(timer);
  if (users === 0 || document.hidden) return;
  tick();
  timer = window.setInterval(tick, EVERY_MS);
}

/** The console's time in milliseconds, for as long as the component exists. */
export function useClock(): Readonly<Ref<number>> {
  users++;
  if (users === 1) {
    document.addEventListener('visibilitychange', run);
    run();
  }
  onScopeDispose(() => {
    users--;
    if (users > 0) return;
    document.removeEventListener('visibilitychange', run);
    run();
  });
  return readonly(now);
}
