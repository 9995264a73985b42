// Makes Moleculer services out of procedures: the action's name is the procedure's name, its input is validated, and
// its handler is a plain function of (input, call).
import type { Context, ServiceSchema } from 'moleculer';
import type { AnyProcedure, Input, Output } from '../contract/procedure.ts';
import type { Call } from '../runtime/call.ts';
import { waitedForMs } from '../runtime/remote-calls.ts';
import { withinRequest } from '../runtime/request-scope.ts';
import { validateInput } from '../runtime/validate.ts';
import { asUnavailable } from '../runtime/write.ts';

/** Below the time a call may take (REQUEST_MS of the broker), by more than a packet is on its way. Statements that run then end. */
const LATEST_BEGIN_MS = 8_500;

export interface Implementation {
  procedure: AnyProcedure;
  handler: (input: never, call: Call, after: string | null) => Promise<unknown>;
}

/** A piece of an answer that is no JSON (`media` of its procedure). */
export interface Piece {
  text: string;
  /** What the next piece is asked for with; null: this was the last. Whoever handles the procedure knows what it means. */
  next: string | null;
  /** Of the first piece: what the answer is called where it is kept as a file. */
  fileName?: string;
}

/** Binds a procedure of the contract to its handler. */
export function implement<P extends AnyProcedure>(
  procedure: P,
  handler: (input: Input<P>, call: Call) => Promise<Output<P>>,
): Implementation {
  return { procedure, handler: handler as Implementation['handler'] };
}

/** Binds a procedure with `media` to what makes its pieces, each after the one that told `after`; null is the first. */
export function implementPieces<P extends AnyProcedure>(
  procedure: P,
  handler: (input: Input<P>, call: Call, after: string | null) => Promise<Piece>,
): Implementation {
  return { procedure, handler: handler as Implementation['handler'] };
}

/** `meta` of contract calls. The broker merges it back into the caller's, which is how changes travel. */
export interface CallMeta {
  call: Omit<Call, 'changes' | 'beginsBefore' | 'credentialsEnded'>;
  changes?: string[];
  credentialsEnded?: boolean;
  /** W3C trace context; the broker gives a call that has none one of its own. */
  traceparent?: string;
  /** `next` of the piece before. */
  after?: string | null;
}

/** Actions that are procedures, named as these are. */
export function contractService(implementations: readonly Implementation[]): Partial<ServiceSchema> {
  const actions = Object.fromEntries(
    implementations.map(({ procedure, handler }) => [
      procedure.name,
      {
        handler: async (ctx: Context<unknown, CallMeta>) => {
          const input = validateInput(procedure, ctx.params);
          const call: Call = { ...ctx.meta.call, changes: [], beginsBefore: performance.now() + LATEST_BEGIN_MS };
          const run = () => handler(input as never, call, ctx.meta.after ?? null);
          const waitedMs = ctx.nodeID === ctx.broker.nodeID ? null : waitedForMs(procedure);
          const output = await withinRequest(waitedMs ?? LATEST_BEGIN_MS, procedure.readOnly, run).catch(
            (error: unknown) => {
              throw asUnavailable(error);
            },
          );
          if (call.changes.length > 0) ctx.meta.changes = [...(ctx.meta.changes ?? []), ...call.changes];
          if (call.credentialsEnded) ctx.meta.credentialsEnded = true;
          return output;
        },
      },
    ]),
  );
  return { settings: { $noServiceNamePrefix: true }, actions };
}
