// Answers of procedures that are no JSON: a text of any length, asked for piece by piece as the client takes it. No more
// than a piece is in memory, and nothing is held in the database or the broker between two.
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'pino';
import { fail } from '../../contract/errors.ts';
import type { Piece } from '../../mixins/contract-service.ts';
import type { Answerer } from './answerer.ts';
import type { Exchange } from './exchange.ts';

/** At a time, of one caller and of all of this process. */
const PER_CALLER = 2;
const PER_PROCESS = 16;
const RETRY_SECONDS = 5;
/** A client that takes nothing for so long is given up; longer than a piece may take to make. */
const STALLED_MS = 60_000;
/** How often the caller is looked at again. */
const CHECK_MS = 5_000;
const CLIENT_GONE = new Set(['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE', 'ECONNRESET', 'EPIPE']);

export interface PieceSource {
  /** The piece after another; null is the first. */
  piece(after: string | null): Promise<Piece>;
  /** Throws when the caller may not go on: the key was revoked, the session has ended. */
  check(): Promise<void>;
}

export class PiecedAnswers {
  readonly #answers: Answerer;
  readonly #log: Logger;
  readonly #open = new Map<string, number>();
  #total = 0;

  constructor(answers: Answerer, log: Logger) {
    this.#answers = answers;
    this.#log = log;
  }

  /** Answers; throws EXPORT_LIMIT, and what the first piece fails with. What breaks off later ends the connection. */
  async answer(exchange: Exchange, source: PieceSource): Promise<void> {
    const { type, id } = exchange.caller.actor;
    const caller = `${type} ${id}`;
    const own = this.#open.get(caller) ?? 0;
    if (own >= PER_CALLER) fail('EXPORT_LIMIT', { limit: PER_CALLER, retryAfterSeconds: RETRY_SECONDS });
    if (this.#total >= PER_PROCESS) fail('EXPORT_LIMIT', { limit: PER_PROCESS, retryAfterSeconds: RETRY_SECONDS });
    this.#open.set(caller, own + 1);
    this.#total += 1;
    try {
      const first = await source.piece(null);
      const response = this.#answers.text(exchange, first.fileName ?? null);
      if (response !== null) await this.#send(exchange, response, first, source);
    } finally {
      this.#total -= 1;
      const left = this.#open.get(caller)! - 1;
      if (left > 0) this.#open.set(caller, left);
      else this.#open.delete(caller);
    }
  }

  async #send(exchange: Exchange, response: ServerResponse, first: Piece, source: PieceSource): Promise<void> {
    response.setTimeout(STALLED_MS, () => response.destroy());
    try {
      await pipeline(texts(first, source), response);
    } catch (err) {
      // The head is gone: that this was not all can only be told by breaking off.
      response.destroy();
      if (CLIENT_GONE.has((err as NodeJS.ErrnoException).code ?? '')) return;
      this.#log.warn({ err, requestId: exchange.requestId }, 'export response broke off');
    }
  }
}

async function* texts(first: Piece, source: PieceSource): AsyncGenerator<string, void, undefined> {
  let checkedAt = performance.now();
  let { text, next } = first;
  yield text;
  while (next !== null) {
    if (performance.now() - checkedAt >= CHECK_MS) {
      await source.check();
      checkedAt = performance.now();
    }
    ({ text, next } = await source.piece(next));
    yield text;
  }
}
