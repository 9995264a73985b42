// Tells node channel processes that a node, a certificate or the channel's address changed. A hint: they look by
// themselves every 2 s.
import type { Runtime } from './runtime.ts';

export function nodeAccessChannel(runtime: Runtime): string {
  return `${runtime.env.redisPrefix}svc:node-access`;
}

export function announceNodeAccess(runtime: Runtime): void {
  runtime.redis.publish(nodeAccessChannel(runtime), '1').catch(() => undefined);
}
