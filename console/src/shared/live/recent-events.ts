// The events of the last seconds, for a tab that joins.
import type { LiveMessage } from './message.ts';

const KEPT_MS = 5_000;
const MOST = 100;

type Events = Extract<LiveMessage, { kind: 'events' }>;

export class RecentEvents {
  #kept: { at: number; message: Events }[] = [];
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  add(message: Events): void {
    this.#kept = [...this.#fresh(), { at: this.#now(), message }].slice(-MOST);
  }

  all(): Events[] {
    return this.#fresh().map(({ message }) => message);
  }

  #fresh(): { at: number; message: Events }[] {
    const since = this.#now() - KEPT_MS;
    return this.#kept.filter(({ at }) => at >= since);
  }
}
