// Something a person starts: a save, a delete. While it runs it cannot be started again; its failure is kept beside it.
import { type Ref, ref, type ShallowRef, shallowRef } from 'vue';
import { asCallError, type CallError } from './call-error.ts';

export interface Action<A extends unknown[], T> {
  running: Ref<boolean>;
  error: ShallowRef<CallError | null>;
  /** Answers what the action answers; undefined when it failed or runs already. */
  run(...args: A): Promise<T | undefined>;
}

export function useAction<A extends unknown[], T>(perform: (...args: A) => Promise<T>): Action<A, T> {
  const running = ref(false);
  const error = shallowRef<CallError | null>(null);
  async function run(...args: A): Promise<T | undefined> {
    if (running.value) return undefined;
    running.value = true;
    error.value = null;
    try {
      return await perform(...args);
    } catch (thrown) {
      error.value = asCallError(thrown);
      return undefined;
    } finally {
      running.value = false;
    }
  }
  return { running, error, run };
}
