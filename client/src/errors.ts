// What a call throws: the console's refusal, or why there is no answer that could be read.
import type { ErrorCode } from './generated/errors.ts';

/** One thing wrong with an input: where (JSON pointer), which rule, and the rule's parameters. */
export interface Issue {
  path: string;
  keyword: string;
  params: Record<string, unknown>;
}

/** The console refused the call: `code` is stable, `data` are its parameters. */
export class ApiError<C extends string = ErrorCode | (string & {})> extends Error {
  override readonly name = 'ApiError';
  readonly operation: string;
  readonly status: number;
  readonly code: C;
  readonly data: Readonly<Record<string, unknown>>;
  /** Seconds to wait before asking again, where the console says so. */
  readonly retryAfterSeconds: number | null;

  constructor(
    operation: string,
    refusal: { status: number; code: C; message: string; data: Record<string, unknown> },
    retryAfterSeconds: number | null,
  ) {
    super(`${operation}: ${refusal.status} ${refusal.code}: ${refusal.message}`);
    this.operation = operation;
    this.status = refusal.status;
    this.code = refusal.code;
    this.data = refusal.data;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** Fields that BAD_REQUEST names; empty for other codes. */
  get issues(): readonly Issue[] {
    return Array.isArray(this.data.issues) ? (this.data.issues as Issue[]) : [];
  }
}

/**
 * `timeout`: no whole answer in time; `unreachable`: no connection, or it broke; `unexpected_answer`: something else
 * answered than the console's API. After the first two a write may have happened or not: an idempotency key makes
 * sending it again safe.
 */
export type ConnectionProblem = 'timeout' | 'unreachable' | 'unexpected_answer';

export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly operation: string;
  readonly problem: ConnectionProblem;
  /** Status of an unexpected answer. */
  readonly status: number | null;

  constructor(operation: string, problem: ConnectionProblem, cause: unknown, status: number | null = null) {
    super(`${operation}: ${problem}${status === null ? '' : ` (status ${status})`}`, { cause });
    this.operation = operation;
    this.problem = problem;
    this.status = status;
  }
}

/** Whether it is a refusal, with one of the codes when some are named. */
export function isApiError<C extends ErrorCode>(error: unknown, ...codes: readonly C[]): error is ApiError<C> {
  return error instanceof ApiError && (codes.length === 0 || (codes as readonly string[]).includes(error.code));
}
