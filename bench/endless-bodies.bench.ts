// Requests over HTTP/2 whose bodies never end: what the edge holds for them, how a visitor of another network fares
// meanwhile, and how soon the memory is back. The data plane runs alone, with the other core for origin and clients.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { httpsWith, writePack } from './lib/certificate-files.ts';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { residentMiB } from './lib/machine.ts';
import { answers, answersTls, buildGo, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { percentile, round2 } from './lib/stats.ts';
import { TlsLoad } from './lib/tls-load.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'memory and visitors while thousands of request bodies never end';
export const needs = ['nginx'];

const SERVER_CPU = '0';
const LOAD_CPU = '1';
const HOST = siteHost(0);
const SAMPLE_MS = 100;
const MOST_ADDED_MIB = 128;
const MOST_P99_MS = 100;
const RECOVERY_SECONDS = 60;
/** Memory counts as returned when no more than this is left of what was added. */
const LEFT_MIB = 32;

interface Attack {
  connections: number;
  networks: number;
}

interface AttackResult {
  connections: number;
  sent: number;
  answered: number;
  ended: number;
}

interface VisitResult {
  millis: number[];
  statuses: number[];
  failed: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const seconds = quick ? 4 : 20;
  const attacks: Attack[] = quick
    ? [{ connections: 20, networks: 1 }]
    : [
        { connections: 20, networks: 1 },
        { connections: 200, networks: 1 },
      ];
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-endless-'));
  const started: Server[] = [];
  try {
    const program = buildGo(
      path.resolve(import.meta.dirname, 'endless-bodies'),
      path.resolve(import.meta.dirname, '../.cache/endless-bodies'),
    );
    const { server, plainPort } = await startEdge(folder, started);
    const figures: Record<string, unknown> = {};
    const aims: BenchResult['aims'] = [];
    for (const attack of attacks) {
      const name = `${attack.connections} connections of ${attack.networks} network${attack.networks > 1 ? 's' : ''}`;
      const before = residentMiB(server.pid);
      let peak = before;
      const sampling = setInterval(() => {
        peak = Math.max(peak, residentMiB(server.pid));
      }, SAMPLE_MS);
      const [attacked, visits] = await Promise.all([
        capture<AttackResult>(program, 'attack', {
          address: `127.0.0.1:${server.port}`,
          host: HOST,
          connections: attack.connections,
          networks: attack.networks,
          seconds,
        }),
        capture<VisitResult>(program, 'visit', { address: `127.0.0.1:${plainPort}`, host: HOST, seconds }),
      ]);
      clearInterval(sampling);
      const recovered = await recovery(server.pid, before);
      const p99 = round2(percentile(visits.millis, 99));
      const served = visits.statuses.filter((status) => status === 200).length;
      const unserved = visits.statuses.length - served + visits.failed;
      figures[name] = {
        beforeMiB: Math.round(before),
        peakMiB: Math.round(peak),
        addedMiB: Math.round(peak - before),
        ...attacked,
        visits: served,
        visitsUnserved: unserved,
        visitP50: round2(percentile(visits.millis, 50)),
        visitP99: p99,
        ...recovered,
      };
      log(`${name}: ${JSON.stringify(figures[name])}`);
      aims.push(
        { aim: `${name}: adds at most ${MOST_ADDED_MIB} MiB`, reached: peak - before <= MOST_ADDED_MIB },
        { aim: `${name}: visitors at p99 within ${MOST_P99_MS} ms`, reached: unserved === 0 && p99 <= MOST_P99_MS },
        {
          aim: `${name}: memory is back within ${RECOVERY_SECONDS} s`,
          reached: recovered.secondsToRecover !== null,
        },
      );
    }
    return { figures, aims, programs: { nginx: ['nginx', '-v'], go: ['go', 'version'] } };
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Waits until the memory of an attack is returned; null where it is not. */
async function recovery(
  pid: number,
  before: number,
): Promise<{ secondsToRecover: number | null; recoveredMiB: number }> {
  const begun = Date.now();
  for (;;) {
    const now = residentMiB(pid);
    const seconds = (Date.now() - begun) / 1000;
    if (now <= before + LEFT_MIB) return { secondsToRecover: round2(seconds), recoveredMiB: Math.round(now) };
    if (seconds > RECOVERY_SECONDS) return { secondsToRecover: null, recoveredMiB: Math.round(now) };
    await sleep(SAMPLE_MS);
  }
}

async function startEdge(folder: string, started: Server[]): Promise<{ server: Server; plainPort: number }> {
  const originPort = await freePort();
  const origin = `  server { listen 127.0.0.1:${originPort} backlog=4096; location / { return 200 "${'x'.repeat(1024)}"; } }`;
  started.push(
    await startServer('origin', LOAD_CPU, nginxCommand(path.join(folder, 'origin'), origin), originPort, () =>
      answers(originPort, 'origin'),
    ),
  );
  const state = path.join(folder, 'edge');
  mkdirSync(state, { mode: 0o700 });
  const certificates = await Array.fromAsync(new TlsLoad(LOAD_CPU).certificates({ host: HOST, key: 'ecdsa' }));
  const pack = await writePack(state, certificates);
  writeEdgeState({
    folder: state,
    sites: 1,
    origin: { address: '127.0.0.1', port: originPort },
    https: (index) => httpsWith(pack[index]!),
  });
  const [plainPort, port] = [await freePort(), await freePort()];
  const server = await startServer('edge', SERVER_CPU, edgeCommand(state, plainPort, undefined, port), port, () =>
    answersTls(port, HOST),
  );
  started.push(server);
  return { server, plainPort };
}

async function capture<T>(program: string, command: string, options: Record<string, string | number>): Promise<T> {
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn('taskset', ['-c', LOAD_CPU, program, command, ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
  return JSON.parse(output) as T;
}
