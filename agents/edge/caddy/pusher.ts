// Brings one feed of changes into Caddy, in order, one call at a time; what waits meanwhile is merged into the next call.
//
//   state      trigger                              next     also
//   idle       change                               pushing
//   pushing    answer                               idle     position reported; waiting changes are pushed
//   pushing    Caddy holds another base             reload   Caddy reads the journal
//   reload     answer                               idle     changes newer than the answer are pushed
//   any        Caddy is to look at files again     refresh  position reported; before anything else is pushed
//   reload     Caddy cannot read the journal        down     the journal is written anew, what Caddy holds keeps serving
//   any        refusal, no answer                   down     the queue is dropped: history and journal have it all
//   down       status with Caddy's position         idle     nothing, the newer changes, or a reload; after failures not
//                                                            before a back-off is over
//
// A change that was refused is not pushed again: Caddy reads it from the journal.
import { performance } from 'node:perf_hooks';
import { backoffDelay } from '../../kit/backoff.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { EdgeError, isJournalUnreadable } from './edge-error.ts';

const HISTORY_CHANGES = 64;
const MIN_RETRY_MS = 200;
const MAX_RETRY_MS = 30_000;

export interface Change<Position> {
  base: Position;
  target: Position;
  /** performance.now() when the change arrived. */
  receivedAt: number;
}

export interface PushTarget<Position, C extends Change<Position>, Answer> {
  name: string;
  log: Log;
  /** Where the journal is. */
  position(): Position;
  same(left: Position, right: Position): boolean;
  /** What a full disk keeps out of the journal, which ends at `position`; undefined when that is not so. */
  unwritten?(position: Position): C | undefined;
  /** One change with the effect of all, in order. */
  merge(changes: readonly C[]): C;
  push(change: C): Promise<Answer>;
  reload(): Promise<Answer>;
  /** Resolves, soon in any case, when these changes can be pushed, or the journal be read; undefined: now. */
  ready?(changes: readonly C[] | undefined): Promise<void> | undefined;
  /** Has Caddy look at files again that are not the journal; undefined when this one need not. */
  refresh?(): Promise<Answer | undefined>;
  /** Writes the journal anew, because Caddy cannot read it. */
  repair(): Promise<void>;
  /** Caddy holds more than the journal, which the console will complete: what serves is kept until then. */
  isAhead(position: Position): boolean;
  positionOf(answer: Answer): Position;
  /** Caddy enforces `position` now; `micros` since the change arrived, 0 after a reload. */
  applied(answer: Answer, micros: number): void;
  /** Caddy does not answer or refuses. */
  failed(problem: string, unavailable: boolean): void;
  /** Delay after a number of failures in a row, ms. */
  delay?: (failures: number) => number;
}

export class Pusher<Position, C extends Change<Position>, Answer> {
  private readonly target: PushTarget<Position, C, Answer>;
  private queue: C[] = [];
  private history: C[] = [];
  private reloadWanted = false;
  private refreshWanted = false;
  /** The journal was replaced, maybe by an earlier one, and Caddy was not seen at its end since. */
  private replaced = false;
  private down = true;
  private running = false;
  private calls = 0;
  private failures = 0;
  /** performance.now() before which nothing is tried again. */
  private notBefore = 0;

  constructor(target: PushTarget<Position, C, Answer>) {
    this.target = target;
  }

  /** Queues a change that follows the one before it. */
  enqueue(change: C): void {
    this.history.push(change);
    if (this.history.length > HISTORY_CHANGES) this.history.shift();
    if (this.down) return;
    this.queue.push(change);
    void this.pump();
  }

  /** Everything changed at once: Caddy has to read the journal. */
  requestReload(): void {
    this.history = [];
    this.queue = [];
    this.reloadWanted = true;
    this.replaced = true;
    if (!this.down) void this.pump();
  }

  /** Files besides the journal changed: Caddy has to look at them before it gets what comes after. */
  requestRefresh(): void {
    this.refreshWanted = true;
    if (!this.down) void this.pump();
  }

  /** Nothing is under way and Caddy has all there is. */
  get idle(): boolean {
    return !this.down && !this.running && !this.isWaiting;
  }

  private get isWaiting(): boolean {
    return this.reloadWanted || this.refreshWanted || this.queue.length > 0;
  }

  /** Grows with every call; a status asked for before it changed says nothing any more. */
  get activity(): number {
    return this.calls;
  }

  get isDown(): boolean {
    return this.down;
  }

  /** Caddy does not answer; wait for `reconcile`. */
  markDown(): void {
    this.down = true;
    this.queue = [];
  }

  /** Another process has not failed yet. */
  forgive(): void {
    this.failures = 0;
    this.notBefore = 0;
  }

  /** How long nothing is tried again, ms; 0 when there was no failure. */
  get retryInMs(): number {
    return Math.max(0, this.notBefore - performance.now());
  }

  /** Caddy answers and is at `position`: bring it to where the journal is. */
  reconcile(position: Position): void {
    if (this.running) return;
    const lacks = this.reloadWanted || this.refreshWanted || !this.target.same(position, this.target.position());
    if (this.retryInMs > 0 && lacks) return;
    this.down = false;
    if (!this.reloadWanted) this.follow(position);
    void this.pump();
  }

  private follow(position: Position): void {
    this.queue = [];
    if (this.target.same(position, this.target.position())) {
      this.replaced = false;
      return;
    }
    const from = this.history.findIndex((change) => this.target.same(change.base, position));
    if (from >= 0) {
      this.queue = this.history.slice(from);
      return;
    }
    // Unless it was the console that took the journal back.
    if (!this.replaced && this.target.isAhead(position)) return;
    const unwritten = this.target.unwritten?.(position);
    if (unwritten) this.queue = [unwritten];
    else this.reloadWanted = true;
  }

  private async pump(): Promise<void> {
    if (this.running) return;
    this.running = true;
    this.calls++;
    try {
      while (!this.down && this.isWaiting) {
        const changes = await this.takeReady();
        if (this.refreshWanted && !this.down) await this.refresh();
        if (this.down) break;
        if (this.reloadWanted) await this.reload();
        else if (changes.length > 0) await this.pushChanges(changes);
      }
    } catch (error) {
      const unavailable = error instanceof EdgeError && error.code === 'unavailable';
      const { delay = (failures) => backoffDelay(failures, Math.random, MIN_RETRY_MS, MAX_RETRY_MS) } = this.target;
      this.markDown();
      this.notBefore = performance.now() + delay(this.failures++);
      this.target.failed(errorText(error), unavailable);
    } finally {
      this.running = false;
    }
  }

  /** Takes what can be pushed from the queue. */
  private async takeReady(): Promise<C[]> {
    const isReload = this.reloadWanted;
    const wait = isReload || this.queue.length > 0 ? this.target.ready?.(isReload ? undefined : this.queue) : undefined;
    // What comes meanwhile has not waited.
    const count = this.queue.length;
    if (wait) await wait;
    return this.down ? [] : this.queue.splice(0, count);
  }

  private async refresh(): Promise<void> {
    this.refreshWanted = false;
    try {
      const answer = await this.target.refresh?.();
      if (answer) this.target.applied(answer, 0);
    } catch (error) {
      this.refreshWanted = true;
      throw error;
    }
  }

  private async pushChanges(changes: readonly C[]): Promise<void> {
    const change = changes.length === 1 ? changes[0]! : this.target.merge(changes);
    let answer: Answer;
    try {
      answer = await this.target.push(change);
    } catch (error) {
      const refused = error instanceof EdgeError && error.code !== 'unavailable';
      if (refused) this.reloadWanted = true;
      if (!refused || error.code !== 'failed_precondition') throw error;
      this.target.log.info('data plane has another position, it reads the journal', {
        feed: this.target.name,
        error,
      });
      return;
    }
    this.forgive();
    if (this.target.same(this.target.positionOf(answer), this.target.position())) this.replaced = false;
    this.target.applied(answer, Math.max(1, Math.round((performance.now() - change.receivedAt) * 1000)));
  }

  private async reload(): Promise<void> {
    this.reloadWanted = false;
    let answer: Answer;
    try {
      answer = await this.target.reload();
    } catch (error) {
      if (!isJournalUnreadable(error)) throw error;
      this.target.log.error('data plane cannot read the journal, agent rewrites it', { feed: this.target.name, error });
      this.reloadWanted = true;
      await this.target.repair();
      throw error;
    }
    const position = this.target.positionOf(answer);
    this.follow(position);
    if (this.reloadWanted) {
      this.reloadWanted = false;
      throw new Error(`the data plane read the ${this.target.name} journal but did not reach its end`);
    }
    this.forgive();
    this.target.applied(answer, 0);
  }
}
