// Ends streams whose sessions are over.
import type { Logger } from 'pino';
import type { Watcher } from './watcher.ts';

/** Which of the sessions with these secrets are live; asking prolongs none. */
export type LiveSessions = (tokens: readonly string[]) => Promise<boolean[]>;

export interface SessionChecksOptions {
  liveSessions: LiveSessions;
  watchers: () => Iterable<Watcher>;
  /** The last line of a stream whose session is over. */
  over: Buffer;
  log: Pick<Logger, 'debug'>;
}

export class SessionChecks {
  readonly #options: SessionChecksOptions;
  #checking: Promise<void> | null = null;
  #checkAgain = false;
  #stopped = false;

  constructor(options: SessionChecksOptions) {
    this.#options = options;
  }

  /** One check at a time; one that is asked for during another follows it. */
  check(): Promise<void> {
    this.#checkAgain = true;
    this.#checking ??= this.#checkUntilDone().finally(() => {
      this.#checking = null;
    });
    return this.#checking;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#checking;
  }

  async #checkUntilDone(): Promise<void> {
    const { liveSessions, watchers, over, log } = this.#options;
    while (this.#checkAgain && !this.#stopped) {
      this.#checkAgain = false;
      const tokens = [...new Set([...watchers()].map(({ token }) => token))];
      if (tokens.length === 0) return;
      try {
        const live = await liveSessions(tokens);
        const ended = new Set(tokens.filter((_, index) => !live[index]));
        for (const watcher of watchers()) if (ended.has(watcher.token)) watcher.end(over);
      } catch (err) {
        // It is asked again in seconds.
        log.debug({ err }, 'sessions of open streams not checked');
      }
    }
  }
}
