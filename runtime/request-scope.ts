// The statements of a request end with it: all when its time is over, those of a read also when its client goes away.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';

/** The response of the client for which this process works; its `close` tells that nobody waits any more. */
const clients = new AsyncLocalStorage<EventEmitter>();
const scopes = new AsyncLocalStorage<RequestScope>();

/** As PostgreSQL names a canceled statement. */
const QUERY_CANCELED = '57014';

/** One call, and the statements of it that run. */
class RequestScope {
  readonly #running = new Set<() => void>();
  #over = false;

  /** Ends what runs; no statement begins any more. */
  end(): void {
    this.#over = true;
    for (const cancel of this.#running) cancel();
  }

  /** Throws where the request is over. */
  refuseLate(): void {
    if (this.#over) throw Object.assign(new Error('the request is over'), { code: QUERY_CANCELED });
  }

  /** Returns what to call when the statement has ended. */
  began(cancel: () => void): () => void {
    this.#running.add(cancel);
    return () => void this.#running.delete(cancel);
  }
}

/** Runs what a client asked for; `response` emits `close` when the client goes away. */
export function forClient<T>(response: EventEmitter, run: () => T): T {
  return clients.run(response, run);
}

/**
 * Runs a call whose statements end after `ms`, and those of a read (`reads`) when its client goes away. A write goes on then: it
 * may have been confirmed already. A client of another process is not known here; its call ends by the time.
 */
export async function withinRequest<T>(ms: number, reads: boolean, run: () => Promise<T>): Promise<T> {
  const scope = new RequestScope();
  const end = () => scope.end();
  const response = reads ? clients.getStore() : undefined;
  response?.once('close', end);
  const timer = setTimeout(end, ms);
  try {
    return await scopes.run(scope, run);
  } finally {
    clearTimeout(timer);
    response?.off('close', end);
  }
}

/** The call of which the code that runs is a part; undefined outside of requests. */
export function currentScope(): RequestScope | undefined {
  return scopes.getStore();
}

/** Runs work that others share with the request that began it: it does not end with that request. */
export const outsideRequests = AsyncLocalStorage.snapshot();
