// Tells nodes that tasks wait for them: at each hint, and every 2 s for the tasks whose hint was lost or whose lease ended.
import { create } from '@bufbuild/protobuf';
import { nodesWithTasks } from '../../../models/nodes/node-task.ts';
import { TasksPendingSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';
import { nodeTasksChannel } from '../../../runtime/node-tasks.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { eventFrame } from '../watch/frames.ts';
import type { WatchHub } from '../watch/watch-hub.ts';

const LOOK_MS = 2_000;
const PENDING = eventFrame({ case: 'tasksPending', value: create(TasksPendingSchema) });

export class TaskBell {
  readonly #runtime: Runtime;
  readonly #hub: Pick<WatchHub, 'tell' | 'streamCount'>;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;

  constructor(runtime: Runtime, hub: Pick<WatchHub, 'tell' | 'streamCount'>) {
    this.#runtime = runtime;
    this.#hub = hub;
  }

  start(): void {
    const hints = this.#runtime.newRedis();
    hints.subscribe(nodeTasksChannel(this.#runtime)).catch(() => undefined);
    hints.on('message', (_channel: string, nodeId: string) => this.#hub.tell(nodeId, PENDING));
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = null;
      });
    }, LOOK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    if (this.#hub.streamCount === 0) return;
    try {
      for (const nodeId of await nodesWithTasks(this.#runtime.pools.channel)) this.#hub.tell(nodeId, PENDING);
    } catch (err) {
      this.#runtime.log.warn({ err }, 'tasks of nodes not read');
    }
  }
}
