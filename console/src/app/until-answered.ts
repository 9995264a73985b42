// What the first page needs from the console is asked until it responds: a navigation that fails would leave a blank page.
import { shallowRef } from 'vue';
import { asCallError, type CallError } from '@/shared/api/call-error.ts';

const ASK_AGAIN_MS = 1_000;

/** Why the console did not respond; null: it did. */
export const startError = shallowRef<CallError | null>(null);
let wake: () => void = () => undefined;

/** Asks again at once. */
export const askNow = () => wake();

/** Repeats a read that failed for a reason that passes. */
export async function untilAnswered<T>(read: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      const answer = await read();
      startError.value = null;
      return answer;
    } catch (thrown) {
      const error = asCallError(thrown);
      if (!error.retryable) throw error;
      startError.value = error;
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, ASK_AGAIN_MS);
      });
    }
  }
}
