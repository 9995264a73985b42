// Takes rows of request logs of this process's nodes, and hands them to the thread of request logs. It begins with the first
// report, and again after it failed.
import { Worker } from 'node:worker_threads';
import { toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { Counter } from 'prom-client';
import type { Appended } from '../../models/logs/log-writer.ts';
import { type ReportLogsRequest, ReportLogsRequestSchema } from '../../proto/gen/svc/node/v1/logs_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Allowance, UNCOUNTED } from './budgets.ts';
import type { LogAnswer, LogQuestion, LogWorkerData } from './log-messages.ts';

/** Bytes of reports that wait; beyond, nodes try again later. */
const MOST_WAITING_BYTES = 64 * 1024 * 1024;
/** An ordinary row is about as long: the budget is spent by it, before the thread decodes the report. */
const BYTES_OF_A_ROW = 256;

interface Running {
  worker: Worker;
  waiting: Map<number, { asked: PromiseWithResolvers<Appended>; bytes: number }>;
  ended: Promise<void>;
}

export class LogIngest {
  readonly #runtime: Runtime;
  readonly #rows: Counter<'verdict'>;
  #running: Running | null = null;
  #nextId = 0;
  #bytes = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#rows = new Counter({
      name: 'svc_request_log_rows_total',
      help: 'Rows of request logs received from nodes, by what became of them: stored, double, refused, too_old.',
      labelNames: ['verdict'],
      registers: [runtime.metrics],
    });
  }

  /**
   * Returns how many rows were set aside, once the others are stored. Throws invalid_argument for what is no report, and
   * resource_exhausted when too much waits, or for more rows than `allowance` allows.
   */
  async report(
    { nodeId, clusterId }: { nodeId: string; clusterId: string },
    report: Uint8Array | ReportLogsRequest,
    allowance: Pick<Allowance, 'rows'> = UNCOUNTED,
  ): Promise<number> {
    const given = report instanceof Uint8Array ? report : toBinary(ReportLogsRequestSchema, report);
    allowance.rows(Math.ceil(given.length / BYTES_OF_A_ROW));
    if (this.#bytes + given.length > MOST_WAITING_BYTES) {
      throw new ConnectError('too many request logs wait to be stored; retry later', Code.ResourceExhausted);
    }
    const bytes = new Uint8Array(given);
    const appended = await this.#ask(bytes, { nodeId, clusterId, now: Date.now() });
    this.#rows.inc({ verdict: 'stored' }, appended.stored);
    this.#rows.inc({ verdict: 'double' }, appended.doubles);
    this.#rows.inc({ verdict: 'refused' }, appended.refused);
    this.#rows.inc({ verdict: 'too_old' }, appended.tooOld);
    return appended.refused + appended.tooOld;
  }

  /** Stores what waits. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    const { worker, ended } = this.#running;
    worker.postMessage({ type: 'stop' } satisfies LogQuestion);
    await ended;
  }

  async #ask(bytes: Uint8Array, node: Extract<LogQuestion, { type: 'report' }>['node']): Promise<Appended> {
    this.#running ??= this.#start();
    const { worker, waiting } = this.#running;
    const id = this.#nextId++;
    const size = bytes.length;
    const asked = Promise.withResolvers<Appended>();
    waiting.set(id, { asked, bytes: size });
    this.#bytes += size;
    worker.postMessage({ type: 'report', id, bytes, node } satisfies LogQuestion, [bytes.buffer as ArrayBuffer]);
    try {
      return await asked.promise;
    } finally {
      this.#bytes -= size;
    }
  }

  #start(): Running {
    const { databaseUrl, databaseDirectUrl } = this.#runtime.env;
    const data: LogWorkerData = { databaseUrl, behindPooler: databaseUrl !== databaseDirectUrl };
    const worker = new Worker(new URL('log-worker.ts', import.meta.url), { workerData: data });
    const waiting: Running['waiting'] = new Map();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    worker.on('message', (answer: LogAnswer) => {
      const asked = waiting.get(answer.id)?.asked;
      waiting.delete(answer.id);
      if (answer.type === 'appended') asked?.resolve(answer.appended);
      else asked?.reject(errorOf(answer));
    });
    let failure = new Error('the thread of request logs ended');
    worker.on('error', (error) => {
      failure = error as Error;
      this.#runtime.log.error(
        { err: failure },
        'the thread of request logs failed, the next report starts another one',
      );
    });
    worker.on('exit', () => {
      this.#running = null;
      for (const { asked } of waiting.values()) asked.reject(failure);
      resolve();
    });
    return { worker, waiting, ended };
  }
}

function errorOf({ message, code, sqlState }: Extract<LogAnswer, { type: 'failed' }>): Error {
  return code === undefined ? Object.assign(new Error(message), { code: sqlState }) : new ConnectError(message, code);
}
