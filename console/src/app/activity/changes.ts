// Follows what was just saved to every node. Each published change is asked for until all connected nodes run it.

import type { Output } from '@contract/procedure.ts';
import { changes as procedures } from '@contract/resources/changes.ts';
import { defineStore } from 'pinia';
import { computed, ref } from 'vue';
import { call } from '@/shared/api/call.ts';
import { asCallError, type CallError } from '@/shared/api/call-error.ts';
import { liveState } from '@/shared/live/live.ts';
import type { LiveFilter } from '@/shared/live/topics.ts';
import { followLive } from '@/shared/live/use-live.ts';

export type Change = Output<typeof procedures.get>;

export interface Followed {
  id: string;
  /** What was saved, in the person's words; empty when the page gave none. */
  subject: string;
  change: Change | null;
  error: CallError | null;
  since: number;
}

const KEPT = 5;
/** Before the first question: most changes are everywhere within a fraction of a second. */
const FIRST_MS = 120;
const GAP_MS = 200;
/** Live updates tell when to ask again; this is for what they cannot tell, and for when there are none. */
const PAUSE_MS = 15_000;
const PAUSE_WITHOUT_LIVE_MS = 2_000;

export const useChanges = defineStore('changes', () => {
  const followed = ref<Followed[]>([]);

  function follow(ids: readonly string[], subject = ''): void {
    for (const id of ids) {
      const entry: Followed = { id, subject, change: null, error: null, since: performance.now() };
      // A later change of the same feed says all that an earlier one would.
      const feed = id.slice(0, id.lastIndexOf('='));
      followed.value = [entry, ...followed.value.filter((other) => !other.id.startsWith(`${feed}=`))].slice(0, KEPT);
      watchHome(id);
    }
  }

  function watchHome(id: string): void {
    let asking = false;
    let again = false;
    let timer = window.setTimeout(ask, FIRST_MS);
    const stop = followLive(topicsOf(id), ask, { gapMs: GAP_MS });
    const end = () => {
      window.clearTimeout(timer);
      stop();
    };

    async function ask(): Promise<void> {
      if (asking) {
        again = true;
        return;
      }
      const entry = followed.value.find((candidate) => candidate.id === id);
      if (!entry) return end();
      window.clearTimeout(timer);
      asking = true;
      again = false;
      try {
        entry.change = await call(procedures.get, { id }, { renewSession: false });
        entry.error = null;
      } catch (error) {
        entry.error = asCallError(error);
        if (!entry.error.retryable) return end();
      } finally {
        asking = false;
      }
      if (entry.change && isHome(entry.change)) return end();
      timer = window.setTimeout(ask, again ? 0 : liveState.value === 'live' ? PAUSE_MS : PAUSE_WITHOUT_LIVE_MS);
    }
  }

  /** Of what was saved here: what nodes still wait for, or could not put to work. */
  const underWay = computed(() => followed.value.filter(({ change }) => !change || !isGood(change)).length);

  function dismiss(id: string): void {
    followed.value = followed.value.filter((entry) => entry.id !== id);
  }

  return { followed, underWay, follow, dismiss };
});

/** What tells that a change came further: nodes that apply its feed, or that come and go. */
function topicsOf(id: string): LiveFilter[] {
  if (id.startsWith('ban=')) return ['bans', 'nodes'];
  return [`revisions:${id.slice(0, id.lastIndexOf('='))}`, 'nodes'];
}

/** Whether nothing is left to wait for: nodes that are away get it when they come back. */
export function isHome(change: Change): boolean {
  return change.done;
}

/** Whether every node has it: what went well need not be looked at. */
export function isGood(change: Change): boolean {
  return change.done && change.nodes.failed === 0 && change.nodes.offline === 0;
}
