// A procedure is declared once, here-by: routing, validation, access, audit, idempotency, OpenAPI and clients derive
// from the declaration. Every field is required, so nothing is unprotected by omission.
import type { Static, TObject, TSchema } from 'typebox';
import type { ErrorCode } from './errors.ts';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Scopes of service accounts (specification: Authentication 5). */
export const SCOPES = ['clusters:read', 'sites:read', 'sites:write', 'system:read', 'usage:read'] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * Who may call.
 * - `public`: no credentials.
 * - `operator`: session or access key; service accounts get SERVICE_ACCOUNT_FORBIDDEN.
 * - `session`: console session only; access keys get ACCESS_KEY_SESSION_REQUIRED.
 * - `{ scope }`: operator, and service accounts with the scope; null means any service account.
 */
export type Access = 'public' | 'operator' | 'session' | { readonly scope: Scope | null };

export interface ProcedureSpec<I extends TObject, O extends TSchema> {
  readonly method: HttpMethod;
  /** Below /api/v1, with {name} for inputs taken from the path. */
  readonly path: string;
  /** One English sentence for OpenAPI. */
  readonly summary: string;
  /**
   * One flat object: the inputs named in the path, and the rest from the query (GET, DELETE) or the JSON body.
   * On /rpc the whole object is the body.
   */
  readonly input: I;
  readonly output: O;
  /**
   * Type of an answer that is no JSON but a text of any length: the gateway sends it piece by piece, as the client takes
   * it. `output` describes the text.
   */
  readonly media?: 'text/csv';
  /** It asks servers elsewhere, and takes seconds: a call between processes waits for it as for a change. */
  readonly slow?: true;
  /** Status of success. */
  readonly status: 200 | 201;
  readonly access: Access;
  /** Whether a read-only access key may call it: every GET, and what the specification names. */
  readonly readOnly: boolean;
  /**
   * Audit action written in the change's transaction, or those that one call can write, each for what it changes; null
   * for reads and what is not audited.
   */
  readonly audit: string | readonly string[] | null;
  /** `refused` for answers that carry a one-time secret. Means nothing on GET and DELETE. */
  readonly idempotency: 'accepted' | 'refused';
  /** Largest body in bytes where 1 MiB is too small. */
  readonly bodyLimit?: number;
  /** Codes this procedure can answer beyond the general ones (errors.ts, GENERAL_CODES). */
  readonly errors: readonly ErrorCode[];
}

export interface Procedure<I extends TObject = TObject, O extends TSchema = TSchema> extends ProcedureSpec<I, O> {
  /** Dotted name: contract path, RPC path and action name, such as `sites.setEnabled`. */
  readonly name: string;
}

// biome-ignore lint/suspicious/noExplicitAny: the variance of handlers over inputs cannot be written without it
export type AnyProcedure = Procedure<any, any>;
export type Input<P> = P extends Procedure<infer I, TSchema> ? Static<I> : never;
export type Output<P> = P extends Procedure<TObject, infer O> ? Static<O> : never;

export type Resource = { readonly [key: string]: AnyProcedure };

/** Declares one procedure; its name is given by {@link resource}. */
export function procedure<I extends TObject, O extends TSchema>(spec: ProcedureSpec<I, O>): ProcedureSpec<I, O> {
  return spec;
}

type Named<T> = { readonly [K in keyof T]: T[K] extends ProcedureSpec<infer I, infer O> ? Procedure<I, O> : never };

/** Names a group of procedures `<name>.<key>`. */
// biome-ignore lint/suspicious/noExplicitAny: see AnyProcedure
export function resource<T extends Record<string, ProcedureSpec<any, any>>>(name: string, specs: T): Named<T> {
  const named = Object.entries(specs).map(([key, spec]) => [key, { ...spec, name: `${name}.${key}` }]);
  return Object.fromEntries(named) as Named<T>;
}

/** Names of the inputs in a path, in order: `/sites/{id}` has `id`. */
export function pathInputs(path: string): string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1] as string);
}
