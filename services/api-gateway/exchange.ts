// One request under way, and what the gateway and the broker tell each other about it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AnyProcedure } from '../../contract/procedure.ts';
import type { CallMeta } from '../../mixins/contract-service.ts';
import type { Call } from '../../runtime/call.ts';
import type { Caller } from './credentials.ts';

/** One request under way, and where its answer goes. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  surface: 'api' | 'rpc' | 'auth';
  requestId: string;
  /** W3C trace context of what the request causes, in the client's trace where it has one. */
  traceparent: string;
  /** performance.now() of its arrival. */
  arrivedAt: number;
  caller: Caller;
  procedure: AnyProcedure | null;
  idempotency: Call['idempotency'];
  /** Set-Cookie headers of the answer. */
  cookies: string[];
}

/** What the gateway needs from the broker. */
export interface Dispatch {
  /** Calls the procedure's action through its alias and answers with {@link Answerer.output}. */
  procedure(exchange: Exchange, input: Record<string, unknown>, meta: CallMeta): Promise<unknown>;
  /** Calls an action that is no procedure. */
  call<T>(action: string, input: unknown, meta?: CallMeta): Promise<T>;
}
