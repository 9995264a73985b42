// Tells node channel processes that a task waits for a node. A hint: they look by themselves every 2 s.
import type { Runtime } from './runtime.ts';

export function nodeTasksChannel({ env }: Pick<Runtime, 'env'>): string {
  return `${env.redisPrefix}svc:node-tasks`;
}

export function announceNodeTask(runtime: Runtime, nodeId: string): void {
  runtime.redis.publish(nodeTasksChannel(runtime), nodeId).catch(() => undefined);
}
