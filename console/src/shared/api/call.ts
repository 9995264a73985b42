// Calls of the contract's procedures, typed by the contract. A session that ended is renewed over the page and the call
// is made again, so that nothing a person typed is lost; a change that was published is handed to the change tracker.
import type { AnyProcedure, Input, Output } from '@contract/procedure.ts';
import { asCallError } from './call-error.ts';
import { type Answer, request } from './request.ts';

export interface CallOptions {
  signal?: AbortSignal;
  timeoutMs?: number;
  /** What the change tracker calls this change: "Site example.com". */
  subject?: string;
  /** false: a 401 is thrown instead of asking for a new sign-in. */
  renewSession?: boolean;
}

interface Hooks {
  /** Settles when the person signed in again; rejects when they gave up. */
  sessionEnded(): Promise<void>;
  changesPublished(ids: readonly string[], subject: string | undefined): void;
}

let hooks: Hooks | null = null;

/** Told once by the application; calls themselves know neither dialogs nor stores. */
export function setCallHooks(given: Hooks): void {
  hooks = given;
}

/** `/rpc/sites/setEnabled` for sites.setEnabled. */
export function rpcPath(procedure: { readonly name: string }): string {
  return `/rpc/${procedure.name.replaceAll('.', '/')}`;
}

/** Calls a procedure; throws CallError. */
export async function call<P extends AnyProcedure>(
  procedure: P,
  input: Input<P>,
  options: CallOptions = {},
): Promise<Output<P>> {
  const { body, headers } = await send(procedure, input, options);
  const published = headers.get('x-svc-change');
  if (published) hooks?.changesPublished(published.split(','), options.subject);
  return body as Output<P>;
}

async function send(procedure: AnyProcedure, input: unknown, options: CallOptions): Promise<Answer> {
  const { signal, timeoutMs } = options;
  const post = () =>
    request(rpcPath(procedure), {
      body: input,
      headers: { 'x-csrf-token': 'orpc' },
      signal,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
  return options.renewSession === false ? post() : withSession(post);
}

/** How often a person signed in again over a page. */
let renewals = 0;

/**
 * Asks, and once more after the person has signed in again where the session had ended. A refusal that arrives after they
 * did, of what was asked before, opens no second dialog.
 */
export async function withSession<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    const before = renewals;
    try {
      return await ask();
    } catch (error) {
      if (asCallError(error).code !== 'UNAUTHORIZED' || !hooks) throw error;
    }
    if (before !== renewals) continue;
    await hooks.sessionEnded();
    renewals++;
    return ask();
  }
}
