// Takes tasks from the console, does a few at once and reports each. Nothing of a task is on disk: one that this process did not
// report is handed out again when its lease ends.
import type { Task } from '../../../proto/gen/svc/node/v1/tasks_pb.js';
import { backoffDelay, sleep } from '../../kit/backoff.ts';
import type { NodeChannel } from '../../kit/channel-client.ts';
import { errorText, type Log } from '../../kit/log.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import { type DoTask, TaskFailed } from './task-kind.ts';

const MAX_AT_ONCE = 4;
const CALL_MS = 10_000;

export interface TaskRunnerOptions {
  /** By the name of the kind. */
  kinds: ReadonlyMap<string, DoTask>;
  channel: () => Pick<NodeChannel, 'takeTasks' | 'reportTasks'> | undefined;
  log: Log;
}

interface Outcome {
  code: string;
  output: Uint8Array;
}

const NOTHING = new Uint8Array();

export class TaskRunner {
  private readonly options: TaskRunnerOptions;
  private readonly stopping = new AbortController();
  private readonly taking: PullLoop;
  private readonly running = new Set<Promise<void>>();

  constructor(options: TaskRunnerOptions) {
    this.options = options;
    this.taking = new PullLoop({
      name: 'tasks',
      log: options.log,
      pull: (signal) => this.take(signal),
      settled: () => undefined,
    });
  }

  /** Takes what waits. */
  request(): void {
    this.taking.request();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.taking.stop();
    await Promise.all(this.running);
  }

  private async take(signal: AbortSignal): Promise<boolean> {
    const free = MAX_AT_ONCE - this.running.size;
    const channel = this.options.channel();
    if (free <= 0 || !channel) return false;
    const tasks = await channel.takeTasks(free, { timeoutMs: CALL_MS, signal });
    for (const task of tasks) {
      const run = this.run(task).finally(() => {
        this.running.delete(run);
        // There was no place for more.
        if (tasks.length === free) this.request();
      });
      this.running.add(run);
    }
    return false;
  }

  /** Never rejects. */
  private async run({ id, attempt, kind, input, leaseMs }: Task): Promise<void> {
    const { log } = this.options;
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(leaseMs)]);
    const progress = this.progressOf(id, attempt, signal);
    const outcome = await this.outcomeOf(kind, input, signal, progress.report);
    await progress.sent();
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const channel = this.options.channel();
        const refused = await channel?.reportTasks([{ id, attempt, ...outcome }], { timeoutMs: CALL_MS, signal });
        if (refused?.includes(id)) log.warn('task result refused', { id, kind, attempt });
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn('task result not reported', { id, kind, error: errorText(error) });
        await sleep(backoffDelay(failures), signal);
      }
    }
  }

  /** Reports how far a task is, one report at a time. One that is lost is not repeated. */
  private progressOf(id: string, attempt: number, signal: AbortSignal) {
    let sending: Promise<unknown> | undefined;
    const report = (output: Uint8Array): void => {
      sending ??= Promise.resolve(
        this.options.channel()?.reportTasks([{ id, attempt, output, running: true }], { timeoutMs: CALL_MS, signal }),
      )
        .catch(() => undefined)
        .finally(() => {
          sending = undefined;
        });
    };
    return { report, sent: async () => sending };
  }

  private async outcomeOf(
    kind: string,
    input: Uint8Array,
    signal: AbortSignal,
    progress: (output: Uint8Array) => void,
  ): Promise<Outcome> {
    const work = this.options.kinds.get(kind);
    if (!work) return { code: 'task_unsupported', output: NOTHING };
    try {
      return { code: '', output: await work(input, signal, progress) };
    } catch (error) {
      if (error instanceof TaskFailed) return { code: error.code, output: NOTHING };
      this.options.log.error('task failed', { kind, error: errorText(error) });
      return { code: 'task_failed', output: NOTHING };
    }
  }
}
