// Follows what was just saved to every node. Each published change is asked for until all connected nodes run it.

import type { Output } from '@contract/procedure.ts';
import { changes as procedures } from '@contract/resources/changes.ts';
import { defineStore } from 'pinia';
import { ref } from 'vue';
import { call } from '@/shared/api/call.ts';
import { asCallError, type CallError } from '@/shared/api/call-error.ts';

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
/** Pauses between questions: quick at first, because most changes are everywhere within a fraction of a second. */
const PAUSES_MS = [120, 200, 300, 500, 800, 1200];
const LONGEST_PAUSE_MS = 2000;

export const useChanges = defineStore('changes', () => {
  const followed = ref<Followed[]>([]);

  function follow(ids: readonly string[], subject = ''): void {
    for (const id of ids) {
      const entry: Followed = { id, subject, change: null, error: null, since: performance.now() };
      // A later change of the same feed says all that an earlier one would.
      const feed = id.slice(0, id.lastIndexOf('='));
      followed.value = [entry, ...followed.value.filter((other) => !other.id.startsWith(`${feed}=`))].slice(0, KEPT);
      void watchHome(id);
    }
  }

  async function watchHome(id: string): Promise<void> {
    for (let turn = 0; ; turn++) {
      await new Promise((done) => setTimeout(done, PAUSES_MS[turn] ?? LONGEST_PAUSE_MS));
      const entry = followed.value.find((candidate) => candidate.id === id);
      if (!entry) return;
      if (document.hidden && turn > PAUSES_MS.length) continue;
      try {
        entry.change = await call(procedures.get, { id }, { renewSession: false });
        entry.error = null;
      } catch (error) {
        entry.error = asCallError(error);
        if (!entry.error.retryable) return;
      }
      if (entry.change && isHome(entry.change)) return;
    }
  }

  function dismiss(id: string): void {
    followed.value = followed.value.filter((entry) => entry.id !== id);
  }

  return { followed, follow, dismiss };
});

/** Whether nothing is left to wait for: nodes that are away get it when they come back. */
export function isHome(change: Change): boolean {
  return change.done;
}
