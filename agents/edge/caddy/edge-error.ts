/** An answer of Caddy that is not a success; `code` is Connect's name of it, "unavailable" when there was no answer. */
export class EdgeError extends Error {
  override name = 'EdgeError';
  readonly code: string;

  constructor(code: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** Whether Caddy could not read a journal that it was to reload; it goes on with what it holds. */
export function isJournalUnreadable(error: unknown): error is EdgeError {
  return (
    error instanceof EdgeError && error.code === 'failed_precondition' && error.message.startsWith('journal_unreadable')
  );
}

/** What a refusal's body says. */
export function refusal(status: number, answer: Buffer): EdgeError {
  try {
    return stated(JSON.parse(answer.toString('utf8'))) ?? unknown(status);
  } catch {
    // Not Connect's error body; the status says enough.
    return unknown(status);
  }
}

/** Connect's error object; undefined when it is none. */
export function stated(error: unknown): EdgeError | undefined {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code !== 'string') return undefined;
  return new EdgeError(code, typeof message === 'string' ? message : code);
}

function unknown(status: number): EdgeError {
  return new EdgeError('unknown', `the data plane responded with status ${status}`);
}
