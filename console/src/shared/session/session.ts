// Who is signed in. The session itself is a cookie no script can read; here is what the console answered about it.

import type { Output } from '@contract/procedure.ts';
import { account } from '@contract/resources/account.ts';
import { defineStore } from 'pinia';
import { computed, ref, shallowRef } from 'vue';
import { call } from '@/shared/api/call.ts';
import { asCallError } from '@/shared/api/call-error.ts';
import { request } from '@/shared/api/request.ts';
import { wakeLive } from '@/shared/live/live.ts';

export type Me = Output<typeof account.me>;

export const useSession = defineStore('session', () => {
  const me = shallowRef<Me | null>(null);
  /** Whether the dialog that renews the session is open. */
  const renewing = ref(false);
  let waiting: { promise: Promise<void>; resolve: () => void; reject: (reason: unknown) => void } | null = null;

  /** Asks who is signed in; null when nobody is. */
  async function refresh(): Promise<Me | null> {
    try {
      me.value = await call(account.me, {}, { renewSession: false });
      wakeLive();
    } catch (error) {
      if (asCallError(error).code !== 'UNAUTHORIZED') throw error;
      me.value = null;
    }
    return me.value;
  }

  /** Settles once the same person has signed in again over the page. Calls that fail meanwhile share one dialog. */
  function ended(): Promise<void> {
    waiting ??= Promise.withResolvers<void>();
    renewing.value = true;
    return waiting.promise;
  }

  function renewed(): void {
    renewing.value = false;
    wakeLive();
    waiting?.resolve();
    waiting = null;
  }

  async function signOut(): Promise<void> {
    await request('/api/auth/sign-out', { body: {} });
    me.value = null;
    // A new page: nothing of the session stays in memory.
    window.location.assign('/login');
  }

  return { me, user: computed(() => me.value?.user ?? null), renewing, refresh, ended, renewed, signOut };
});
