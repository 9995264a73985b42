// For actions that are no procedures.
import type { Context } from 'moleculer';
import type { ActionTraits } from '../runtime/remote-calls.ts';

type Handler<P, R> = (context: Context<P>) => Promise<R>;

/** An action that may run twice: it reads, or has the same effect again. Its caller tries another process when one is silent. */
export function repeatable<P, R>(handler: Handler<P, R>): ActionTraits & { handler: Handler<P, R> } {
  return { repeatable: true, handler };
}
