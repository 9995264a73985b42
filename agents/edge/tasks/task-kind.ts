// Kinds of tasks that the console has nodes do. A feature folder brings its own in a file `<name>.task.ts`, which the register
// collects; the console has a kind of the same name.
import type { EdgeNode } from '../lib/part.ts';

export interface TaskKind {
  readonly name: string;
  /** Made with the agent, before the journal of the configuration is read. */
  make(node: EdgeNode): DoTask;
}

/**
 * Does a task: from the input of the kind to its output, at most 16 KiB. The signal aborts when the task is no longer this
 * node's. `progress` reports an output that is not the last. Throws {@link TaskFailed} with a code of the kind; anything else is
 * reported as `task_failed`.
 */
export type DoTask = (
  input: Uint8Array,
  signal: AbortSignal,
  progress: (output: Uint8Array) => void,
) => Promise<Uint8Array>;

export class TaskFailed extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`the task failed: ${code}`);
    this.name = 'TaskFailed';
    this.code = code;
  }
}
