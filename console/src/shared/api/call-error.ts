// What a call that failed says. Codes and parameters are translated where they are shown (ErrorNote); the server's
// English text is the last resort.
import type { Issue } from '@contract/errors.ts';

/** Codes of the contract, and what happens before a server can answer. */
export type FailureCode = string;

export class CallError extends Error {
  override readonly name = 'CallError';
  /** A code of contract/errors.ts, or NETWORK, TIMEOUT, ABORTED, UNEXPECTED_ANSWER. */
  readonly code: FailureCode;
  /** 0 when nothing was answered. */
  readonly status: number;
  readonly data: Readonly<Record<string, unknown>>;
  readonly requestId: string | null;

  constructor(
    code: FailureCode,
    message: string,
    status = 0,
    data: Record<string, unknown> = {},
    requestId: string | null = null,
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.data = data;
    this.requestId = requestId;
  }

  /** What is wrong with which field, for BAD_REQUEST. */
  get issues(): readonly Issue[] {
    return Array.isArray(this.data.issues) ? (this.data.issues as Issue[]) : [];
  }

  /** Whether the same call may well succeed a little later. */
  get retryable(): boolean {
    return this.status === 0 ? this.code !== 'ABORTED' : this.status >= 500 || this.status === 429;
  }
}

export function asCallError(error: unknown): CallError {
  if (error instanceof CallError) return error;
  return new CallError('UNEXPECTED_ANSWER', error instanceof Error ? error.message : String(error));
}
