// What a call is: input first, options second; `answer` tells what travels beside the body.
import type { ErrorCode } from './generated/errors.ts';
import type { Operations } from './generated/operations.ts';

export type OperationName = keyof Operations;
export type Input<N extends OperationName> = Operations[N]['input'];
export type Output<N extends OperationName> = Operations[N]['output'];
/** Codes that the operation can answer. */
export type ErrorCodesOf<N extends OperationName> = Extract<Operations[N]['codes'], ErrorCode>;

export interface ReadOptions {
  /** Gives the call up. */
  signal?: AbortSignal | undefined;
  /** Longest time of one attempt, its answer's body included; default: the client's. */
  timeoutMs?: number | undefined;
}

export interface WriteOptions extends ReadOptions {
  /** The same request sent again with the same key happens once. */
  idempotencyKey?: string | undefined;
}

export type Options<N extends OperationName> = Operations[N]['idempotencyKey'] extends true
  ? WriteOptions
  : ReadOptions;

export interface Answer<T> {
  status: number;
  body: T;
  /** What the call published, to be followed with `changes.get`; null when it published nothing. */
  change: string | null;
  /** Whether this is the stored answer of an earlier request with the same idempotency key. */
  replayed: boolean;
}

/** Input may be left out where nothing in it is required. */
type Parameters<N extends OperationName> =
  Record<string, never> extends Input<N>
    ? [input?: Input<N>, options?: Options<N>]
    : [input: Input<N>, options?: Options<N>];

export interface Call<N extends OperationName> {
  /** The body of the answer. Throws ApiError for a refusal, ConnectionError when there is no answer. */
  (...given: Parameters<N>): Promise<Output<N>>;
  /** The same with status, change and replay. */
  answer(...given: Parameters<N>): Promise<Answer<Output<N>>>;
}
