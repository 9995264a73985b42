// Options of the broker of one console process.
import { hostname } from 'node:os';
import type { BrokerOptions, Discoverers } from 'moleculer';
import { HEARTBEAT_MS, Heartbeats, SILENCE_MS } from './runtime/heartbeats.ts';
import { brokerLogger } from './runtime/log.ts';
import { pipelineMetrics } from './runtime/pipeline-metrics.ts';
import { remoteCalls } from './runtime/remote-calls.ts';
import type { Runtime } from './runtime/runtime.ts';
import { createTransporter, PACKETS_UNDERSTOOD } from './runtime/transporter.ts';

/** Time in-flight actions get when the process stops. */
export const SHUTDOWN_MS = 5_000;
/** Longest time a call may take; the default of the broker never ends. */
export const REQUEST_MS = 10_000;

/** One line in the log a minute, however many packets are dropped. */
const WARN_EVERY_MS = 60_000;
/** Raised when processes of this release cannot talk to those before; they do not hear each other then. */
const NAMESPACE = 'svc2';

export function brokerOptions({ env, log, seals, cipher, metrics }: Runtime): BrokerOptions {
  const { refused } = pipelineMetrics(metrics);
  let warnAgainAt = 0;
  const onRefused = (topic: string) => {
    refused.inc({ of: 'broker' });
    if (performance.now() < warnAgainAt) return;
    warnAgainAt = performance.now() + WARN_EVERY_MS;
    log.warn({ topic }, 'a packet was dropped: a stranger, another master key, or a clock five minutes off');
  };
  return {
    namespace: `${env.redisPrefix}${NAMESPACE}`,
    nodeID: `${hostname()}-${process.pid}-${crypto.randomUUID().slice(0, 8)}`,
    logger: brokerLogger(log),
    metadata: PACKETS_UNDERSTOOD,
    transporter:
      env.transporter === 'redis'
        ? createTransporter({ redisUrl: env.redisUrl, seal: seals.broker, cipher, onRefused })
        : null,
    serializer: 'JSON',
    requestTimeout: REQUEST_MS,
    // For the packets that tell of this process; the times that count are those of the discoverer.
    heartbeatInterval: HEARTBEAT_MS / 1000,
    heartbeatTimeout: SILENCE_MS / 1000,
    tracking: { enabled: true, shutdownTimeout: SHUTDOWN_MS },
    registry: {
      strategy: 'RoundRobin',
      preferLocal: true,
      discoverer: new Heartbeats() as unknown as Discoverers.Base,
    },
    middlewares: [remoteCalls],
    // A queue of calls that is this long is not going to be served within their time.
    transit: { maxQueueSize: 10_000 },
    // Inputs are validated by the contract's schemas, which stay out of the packets that describe services.
    validator: false,
    internalServices: false,
    skipProcessEventRegistration: true,
    metrics: { enabled: false },
    tracing: { enabled: false },
  } as BrokerOptions;
}
