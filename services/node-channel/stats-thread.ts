// The thread of counts as the console's thread sees it. It begins with the first report, and again after it failed.
import { Worker } from 'node:worker_threads';
import { ConnectError } from '@connectrpc/connect';
import type { StatsAnswer, StatsFailure, StatsQuestion, StatsWorkerData } from './stats-messages.ts';
import type { Places } from './stats-report.ts';
import type { CountingNode, StoredGroup } from './stats-store.ts';

/** A report that the thread has decoded; it is stored or dropped. */
export interface ReadReport {
  /** Rows that it brings. */
  rows: number;
  /** Returns the highest batch of the node that is stored. */
  store(node: CountingNode, places: Places): Promise<bigint>;
  drop(): void;
}

interface ThreadHooks {
  stored(group: StoredGroup): void;
  failed(error: Error): void;
}

interface Running {
  worker: Worker;
  waiting: Map<number, PromiseWithResolvers<StatsAnswer>>;
  ended: Promise<void>;
}

export class StatsThread {
  readonly #data: StatsWorkerData;
  readonly #hooks: ThreadHooks;
  #running: Running | null = null;
  #nextId = 0;

  constructor(data: StatsWorkerData, hooks: ThreadHooks) {
    this.#data = data;
    this.#hooks = hooks;
  }

  /** Throws invalid_argument for bytes that are no report. */
  async read(bytes: Uint8Array): Promise<ReadReport> {
    this.#running ??= this.#start();
    const running = this.#running;
    const id = this.#nextId++;
    // Bytes of a message may be part of a larger buffer, which would travel with them.
    const own = new Uint8Array(bytes);
    const answer = await ask(running, { type: 'read', id, bytes: own }, [own.buffer]);
    return {
      rows: answer.type === 'read' ? answer.rows : 0,
      store: async (node, places) => {
        const stored = await ask(running, { type: 'store', id, node, places });
        return stored.type === 'stored' ? stored.acknowledged : 0n;
      },
      drop: () => running.worker.postMessage({ type: 'drop', id } satisfies StatsQuestion),
    };
  }

  /** Ends it when what it has is stored. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    const { worker, ended } = this.#running;
    worker.postMessage({ type: 'stop' } satisfies StatsQuestion);
    await ended;
  }

  #start(): Running {
    const worker = new Worker(new URL('stats-worker.ts', import.meta.url), { workerData: this.#data });
    const waiting: Running['waiting'] = new Map();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    worker.on('message', (answer: StatsAnswer) => {
      if (answer.type === 'group') return this.#hooks.stored(answer.group);
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (answer.type === 'failed') asked?.reject(errorOf(answer.failure));
      else asked?.resolve(answer);
    });
    let failure = new Error('the thread of counts ended');
    worker.on('error', (error) => {
      failure = error as Error;
      this.#hooks.failed(failure);
    });
    worker.on('exit', () => {
      this.#running = null;
      for (const { reject } of waiting.values()) reject(failure);
      resolve();
    });
    return { worker, waiting, ended };
  }
}

function ask({ worker, waiting }: Running, question: StatsQuestion & { id: number }, transfer: ArrayBuffer[] = []) {
  const asked = Promise.withResolvers<StatsAnswer>();
  waiting.set(question.id, asked);
  worker.postMessage(question, transfer);
  return asked.promise;
}

function errorOf({ message, code, sqlState }: StatsFailure): Error {
  return code === undefined ? Object.assign(new Error(message), { code: sqlState }) : new ConnectError(message, code);
}
