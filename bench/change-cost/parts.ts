// Milliseconds of a processor profile by what they were spent in.
import type { Profiler } from 'node:inspector';

/** What a package, a folder of this project or a module of Node belongs to; the first that matches. */
const PARTS = [
  ['statements: knex, pg, objection', /\/node_modules\/(knex|pg|pg-[a-z]+|postgres-[a-z]+|tarn|objection|db-errors)\//],
  ['redis: ioredis', /\/node_modules\/(ioredis|redis-[a-z]+|denque|standard-as-callback)\//],
  ['broker: moleculer', /\/node_modules\/moleculer\//],
  ['encoding: protobuf', /\/node_modules\/@bufbuild\//],
  ['http and gateway', /\/node_modules\/moleculer-web\/|^node:_?http|\/services\/api-gateway\/|\/contract\//],
  ['timers', /^node:(internal\/)?(timers|priority_queue)/],
  ['crypto', /^node:(internal\/)?crypto/],
  ['sockets and streams', /^node:(internal\/)?(net|stream|buffer|dgram|tls)/],
  ['pipeline', /\/pipeline\//],
  ['other packages', /\/node_modules\//],
  ['other of node', /^node:/],
  ['models', /\/models\//],
  ['services, mixins, runtime', /\/(services|mixins|runtime|proto)\//],
] as const;

/** Self time; idle time, and what the profile itself takes, are left out. */
export function partsOf({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Record<string, number> {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame.url, callFrame.functionName)]));
  const parts: Record<string, number> = {};
  for (const [index, id] of samples.entries()) {
    const name = names.get(id)!;
    if (name !== null) parts[name] = (parts[name] ?? 0) + timeDeltas[index]! / 1000;
  }
  return parts;
}

function partOf(url: string, functionName: string): string | null {
  if (functionName === '(idle)' || url.startsWith('node:inspector') || url.endsWith('/watch.ts')) return null;
  if (functionName === '(garbage collector)') return 'garbage collector';
  // Frames without a module: writes to sockets, hashes, JSON.
  if (url === '') return 'native code: writes to sockets, JSON';
  return PARTS.find(([, pattern]) => pattern.test(url))?.[0] ?? 'other';
}
