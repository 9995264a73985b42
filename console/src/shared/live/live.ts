// Live updates of this tab: who wants to know of what. The connection is made at the first wish.
import { type Ref, ref } from 'vue';
import type { LiveMessage, LiveState } from './message.ts';
import { concerns, type LiveFilter } from './topics.ts';
import { openTransport, type Transport } from './transport.ts';

export interface LiveWish {
  filters(): readonly LiveFilter[];
  run(): void;
}

/** Whether changes are told; while they are not, pages ask by themselves. */
export const liveState: Ref<LiveState> = ref('off');

const wishes = new Set<LiveWish>();
let transport: Transport | null = null;

function take(message: LiveMessage): void {
  if (message.kind === 'state') {
    liveState.value = message.state;
    return;
  }
  for (const wish of [...wishes]) {
    if (message.kind === 'reset' || concerns(wish.filters(), message.events)) wish.run();
  }
}

/** Runs the wish at each event that concerns it, until the answered function is called. */
export function wishLive(wish: LiveWish): () => void {
  wishes.add(wish);
  if (!transport) {
    transport = openTransport(take);
    transport.hello();
    // A page that is kept for the way back is not told anything meanwhile.
    window.addEventListener('pagehide', () => transport?.bye());
    window.addEventListener('pageshow', ({ persisted }) => {
      if (!persisted) return;
      transport?.hello();
      for (const each of [...wishes]) each.run();
    });
  }
  return () => wishes.delete(wish);
}

/** Somebody signed in: a stream that ended with its session begins again. */
export function wakeLive(): void {
  transport?.hello();
}
