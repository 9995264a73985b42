import { asCallError, CallError } from '../api/call-error.ts';
import type { Conflict } from './changes.ts';

/** How often somebody else may be quicker. */
const AGAIN = 4;

/**
 * Sends edits; when somebody else saved meanwhile, `rebase` puts them on top of that and they are sent again. Throws
 * ABORTED where a person has to choose first; `rebase` answers null when there is nothing left to put them on.
 */
export async function sendOnTop<T>(
  send: () => Promise<T>,
  rebase: () => Promise<readonly Conflict[] | null>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await send();
    } catch (thrown) {
      const error = asCallError(thrown);
      if (error.code !== 'UPDATED_AT_MISMATCH' || attempt >= AGAIN) throw error;
      const conflicts = await rebase();
      if (conflicts === null) throw error;
      if (conflicts.length > 0) throw new CallError('ABORTED', 'A person chooses.');
    }
  }
}
