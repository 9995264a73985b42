// Calls that another process answers. Reads end after two seconds. What may run twice is tried once more in another process
// when the first one went silent, was too slow or is stopping; everything else only when it cannot have begun.
// Every call carries the traceparent of its caller.
import type { CallMiddlewareHandler, Context, Middleware, ServiceBroker } from 'moleculer';
import { AUTH_ENDPOINTS } from '../contract/auth-endpoints.ts';
import { PROCEDURES } from '../contract/index.ts';
import type { AnyProcedure } from '../contract/procedure.ts';
import { traceparent } from './trace-context.ts';

/** Longest time of a read that another process answers, in each of the processes that are tried. */
export const REMOTE_READ_MS = 2_000;

/** What an action that is no procedure declares of itself, and every process tells the others of. */
export interface ActionTraits {
  /** It may run twice: it reads, or has the same effect again. */
  repeatable?: boolean;
}

interface Endpoint {
  id: string;
  local: boolean;
  isAvailable: boolean;
  action: { name: string } & ActionTraits;
}

interface Options {
  meta?: { traceparent?: string };
  parentCtx?: { meta: { traceparent?: string } };
  timeout?: number;
  nodeID?: string;
}

type Called = Promise<unknown> & { ctx?: Context | undefined };
type Call = (action: string | Endpoint, params: unknown, options?: Options) => Called;

// The call did not begin there: its process is stopping, or has not the service any more.
const NOT_BEGUN = new Set(['SERVICE_NOT_FOUND', 'SERVICE_NOT_AVAILABLE']);
// The call had begun, or may have.
const UNANSWERED = new Set(['REQUEST_TIMEOUT', 'REQUEST_REJECTED']);

/** The process of the call died or went silent: the call may have had its effect, or may still have it. */
export function isAbandoned(error: unknown): boolean {
  return (error as { type?: unknown } | null)?.type === 'REQUEST_REJECTED';
}

interface Rule {
  timeoutMs: number | null;
  repeatable: boolean;
}

const AUTH_READS = new Set<string>(
  Object.values(AUTH_ENDPOINTS).flatMap(({ method, name }) => (method === 'GET' ? [name] : [])),
);

function ruleOf({ name, repeatable = false }: Endpoint['action']): Rule {
  const procedure = PROCEDURES.get(name);
  if (!procedure) {
    const reads = repeatable || AUTH_READS.has(name);
    return { timeoutMs: reads ? REMOTE_READ_MS : null, repeatable: reads };
  }
  const { method, audit, readOnly } = procedure;
  return { timeoutMs: waitedForMs(procedure), repeatable: method === 'GET' || (readOnly && audit === null) };
}

/** How long a caller in another process waits for the procedure; null: as long as the broker lets it. */
export function waitedForMs({ method, slow, media }: AnyProcedure): number | null {
  return method === 'GET' && !slow && media === undefined ? REMOTE_READ_MS : null;
}

export function remoteCalls(broker: ServiceBroker): Middleware {
  return {
    name: 'RemoteCalls',
    call(next: CallMiddlewareHandler) {
      const call = next as unknown as Call;
      const wrapped: Call = (action, params, given = {}) => {
        const meta = { ...given.meta, traceparent: traceparent((given.meta ?? given.parentCtx?.meta)?.traceparent) };
        const options = { ...given, meta };
        const endpoint = (
          typeof action === 'string' ? broker.findNextActionEndpoint(action, given, given.parentCtx as never) : action
        ) as Endpoint | Error;
        // Without an endpoint the broker says so in its own way.
        if (endpoint instanceof Error) return call(action, params, options);
        return endpoint.local ? call(endpoint, params, options) : remoteCall(broker, call, endpoint, params, options);
      };
      return wrapped as unknown as CallMiddlewareHandler;
    },
  } as unknown as Middleware;
}

function remoteCall(broker: ServiceBroker, call: Call, endpoint: Endpoint, params: unknown, options: Options): Called {
  const { timeoutMs, repeatable } = ruleOf(endpoint.action);
  const timed = {
    ...options,
    ...(timeoutMs !== null && { timeout: Math.min(timeoutMs, options.timeout ?? timeoutMs) }),
  };
  const first = call(endpoint, params, timed);
  const called: Called = first.catch((error: { type?: unknown }) => {
    const type = String(error?.type);
    if (!NOT_BEGUN.has(type) && !(repeatable && UNANSWERED.has(type))) throw error;
    const other = another(broker, endpoint);
    if (!other) throw error;
    const second = call(other, params, timed);
    called.ctx = second.ctx;
    return second;
  });
  // The broker merges what the called one added to its meta from here.
  called.ctx = first.ctx;
  return called;
}

interface Registry {
  getActionEndpoints(name: string): { endpoints: Endpoint[] } | null;
}

/** Another process that has the action, this one first. */
function another({ registry }: ServiceBroker, tried: Endpoint): Endpoint | null {
  const { endpoints } = (registry as unknown as Registry).getActionEndpoints(tried.action.name) ?? { endpoints: [] };
  const others = endpoints.filter(({ id, isAvailable }) => isAvailable && id !== tried.id);
  return others.find(({ local }) => local) ?? others[Math.floor(Math.random() * others.length)] ?? null;
}
