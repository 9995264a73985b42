// What the change pipeline tells Prometheus; several actors of a process share the metrics.
import { Counter, Gauge, type Registry } from 'prom-client';

export interface PipelineMetrics {
  /** Outbox rows moved to Redis. */
  relayed: Counter;
  /** Batches appended to fan-out streams, and their bytes, by feed. */
  batches: Counter<'feed'>;
  batchBytes: Counter<'feed'>;
  /** Partitions that this process owns, by feed. */
  partitions: Gauge<'feed'>;
  /** Rows of the outbox whose topic no feed here has, by topic. */
  unknownRows: Gauge<'topic'>;
  /** What came through Redis without a seal of this console: packets of the broker, batches of fan-out streams. */
  refused: Counter<'of'>;
  /** Messages set aside after too many tries, and rows of the outbox that nobody took. */
  deadLetters: Counter;
}

const made = new WeakMap<Registry, PipelineMetrics>();

/** The metrics of a process, made at first use. */
export function pipelineMetrics(registry: Registry): PipelineMetrics {
  const known = made.get(registry);
  if (known) return known;
  const registers = [registry];
  const labelNames = ['feed'] as const;
  const metrics: PipelineMetrics = {
    relayed: new Counter({ name: 'svc_relayed_total', help: 'Outbox rows moved to Redis.', registers }),
    batches: new Counter({
      name: 'svc_fanout_batches_total',
      help: 'Batches of changes sent to nodes.',
      labelNames,
      registers,
    }),
    batchBytes: new Counter({
      name: 'svc_fanout_bytes_total',
      help: 'Bytes of batches sent to nodes.',
      labelNames,
      registers,
    }),
    partitions: new Gauge({
      name: 'svc_partitions_owned',
      help: 'Partitions (clusters of a feed) that this worker owns.',
      labelNames,
      registers,
    }),
    unknownRows: new Gauge({
      name: 'svc_outbox_unknown_rows',
      help: 'Outbox rows whose topic this version does not know.',
      labelNames: ['topic'],
      registers,
    }),
    refused: new Counter({
      name: 'svc_refused_messages_total',
      help: 'Messages in Redis without a valid seal.',
      labelNames: ['of'],
      registers,
    }),
    deadLetters: new Counter({
      name: 'svc_dead_letters_total',
      help: 'Messages moved to the dead letters after repeated failures.',
      registers,
    }),
  };
  made.set(registry, metrics);
  return metrics;
}
