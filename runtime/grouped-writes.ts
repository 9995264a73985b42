// Writes of one kind that share transactions: those that arrive while one is under way make the next group. The busier
// the console, the larger the groups; alone, a write waits for nobody.
import { ContractError, fail } from '../contract/errors.ts';
import type { Call } from './call.ts';
import { outsideRequests } from './request-scope.ts';
import type { Runtime } from './runtime.ts';
import { type Outcome, refuseLate, type Tx, type WriteOptions, writeTogether } from './write.ts';

/** Writes in one transaction, at most. */
const LARGEST_GROUP = 64;

/** More than are written in the time that a call has; beyond it is said at once. */
const MOST_WAITING = 5_000;

/** Those who wait behind a stalled group are answered within their time, by a check this often. */
const LATE_CHECK_MS = 250;

/** Locks: one member's wait, and the others have to do without it. */
const CONTENDED = new Set(['55P03', '40P01', '40001']);

interface Waiting<I, T> {
  input: I;
  key: string;
  call: Call;
  resolve(output: T): void;
  reject(error: unknown): void;
}

export interface GroupedWritesOptions<I, T> extends Pick<WriteOptions, 'pool' | 'status'> {
  /** What a write locks: no two of a group have the same, and members come in this order. */
  key(input: I): string;
  /**
   * As of {@link writeTogether}; transactions and inputs in parallel. Without patience it is to fail soon with a lock
   * timeout when something is locked: later groups wait, and its members are tried again each alone, with patience.
   */
  work(txs: readonly Tx[], inputs: readonly I[], patient: boolean): Promise<Outcome<T>[]>;
}

export class GroupedWrites<I, T> {
  readonly #runtime: Runtime;
  readonly #options: GroupedWritesOptions<I, T>;
  #waiting: Waiting<I, T>[] = [];
  #busy = false;

  constructor(runtime: Runtime, options: GroupedWritesOptions<I, T>) {
    this.#runtime = runtime;
    this.#options = options;
  }

  /**
   * Writes in the next group; answers and throws what `work` said of this one. Throws SERVICE_UNAVAILABLE when too many
   * wait, or its turn comes when its caller may have been answered.
   */
  async run(input: I, call: Call): Promise<T> {
    if (this.#waiting.length >= MOST_WAITING) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 1 });
    return new Promise((resolve, reject) => {
      this.#waiting.push({ input, key: this.#options.key(input), call, resolve, reject });
      // Groups after the first are of other requests.
      if (!this.#busy) void outsideRequests(() => this.#drain());
    });
  }

  async #drain(): Promise<void> {
    this.#busy = true;
    const check = setInterval(() => this.#refuseLate(), LATE_CHECK_MS);
    while (this.#waiting.length > 0) {
      this.#refuseLate();
      const group = this.#takeGroup();
      if (group.length === 0) continue;
      try {
        await this.#write(group, false);
      } catch (error) {
        if (isWorthAnother(error)) for (const member of group) void this.#writeAlone(member);
        else for (const { reject } of group) reject(error);
      }
    }
    clearInterval(check);
    this.#busy = false;
  }

  #refuseLate(): void {
    this.#waiting = this.#waiting.filter(({ call, reject }) => {
      try {
        refuseLate(call);
        return true;
      } catch (error) {
        reject(error);
        return false;
      }
    });
  }

  #takeGroup(): Waiting<I, T>[] {
    const group = new Map<string, Waiting<I, T>>();
    const rest: Waiting<I, T>[] = [];
    for (const each of this.#waiting) {
      if (group.size < LARGEST_GROUP && !group.has(each.key)) group.set(each.key, each);
      else rest.push(each);
    }
    this.#waiting = rest;
    return [...group.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  async #writeAlone(member: Waiting<I, T>): Promise<void> {
    await this.#write([member], true).catch(member.reject);
  }

  async #write(group: readonly Waiting<I, T>[], patient: boolean): Promise<void> {
    const inputs = new Map(group.map(({ call, input }) => [call, input]));
    const calls = group.map(({ call }) => call);
    const outcomes = await writeTogether(this.#runtime, calls, this.#options, (txs) =>
      this.#options.work(
        txs,
        txs.map(({ call }) => inputs.get(call)!),
        patient,
      ),
    );
    for (const [index, outcome] of outcomes.entries()) {
      const { resolve, reject } = group[index]!;
      if ('error' in outcome) reject(outcome.error);
      else resolve(outcome.output);
    }
  }
}

/** Whether the group has certainly left nothing behind, and a member may do better alone. */
function isWorthAnother(error: unknown): boolean {
  if (!(error instanceof ContractError) || error.type !== 'SERVICE_UNAVAILABLE') return true;
  const { code, nativeError } = (error.cause ?? {}) as { code?: string; nativeError?: { code?: string } };
  return CONTENDED.has(nativeError?.code ?? code ?? '');
}
