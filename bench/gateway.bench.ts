// The API through HTTP with access keys: reading a site and posting a ban, beside Node's bare http server answering a
// constant in the same run. wrk has one core; the console shares the other with PostgreSQL and Redis.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { CONNECTIONS, KeyPool } from './lib/key-pool.ts';
import { cpuSeconds } from './lib/machine.ts';
import { startStack } from './lib/stack.ts';
import { medianInterval, round2 } from './lib/stats.ts';
import { type WrkRun, wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'GET site and POST ban with access keys, beside a bare Node http server';
export const needs = ['wrk'];

const UNEXPECTED_SHARE = 0.001;

interface Subject {
  name: string;
  pid: number;
  run(seconds: number): Promise<WrkRun>;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 9;
  const seconds = quick ? 1 : 3;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-gateway-'));
  const stack = await startStack('gateway');
  const bare = spawn(process.execPath, ['-e', BARE_SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    mkdirSync(folder, { recursive: true });
    await stack.client.api('PUT', '/settings/bans', { maxTotal: 100_000, shareAutoBans: true });
    const [port] = (await once(bare.stdout!, 'data')) as [Buffer];
    const keys = await stack.accessKeys(quick ? 120 : 700);
    log(`${keys.length} access keys`);
    const pool = new KeyPool(keys);
    const subjects: Subject[] = [
      {
        name: 'bare',
        pid: bare.pid!,
        run: (length) =>
          wrk(folder, {
            url: `http://127.0.0.1:${port.toString().trim()}/`,
            seconds: length,
            connections: CONNECTIONS,
            cpus: '1',
          }),
      },
      {
        name: 'site',
        pid: stack.facts.pids.console,
        run: (length) =>
          pool.run(folder, length, {
            url: `${stack.facts.consoleUrl}/api/v1/sites/${stack.facts.site.id}`,
            method: 'GET',
            body: 'nil',
          }),
      },
      {
        name: 'ban',
        pid: stack.facts.pids.console,
        run: (length) =>
          pool.run(folder, length, {
            url: `${stack.facts.consoleUrl}/api/v1/bans`,
            method: 'POST',
            body: banBody(pool.nextBlock()),
          }),
      },
    ];
    const measured = new Map<
      string,
      { rps: number[]; p99: number[]; micros: number[]; requests: number; unexpected: number }
    >();
    for (let round = 0; round < rounds; round++) {
      for (const subject of subjects) {
        const before = cpuSeconds(subject.pid);
        const result = await subject.run(seconds);
        const entry = measured.get(subject.name) ?? { rps: [], p99: [], micros: [], requests: 0, unexpected: 0 };
        entry.rps.push(result.rps);
        entry.p99.push(result.p99Ms);
        entry.micros.push(((cpuSeconds(subject.pid) - before) / result.requests) * 1e6);
        entry.requests += result.requests;
        entry.unexpected += result.unexpected;
        measured.set(subject.name, entry);
        log(`round ${round + 1} ${subject.name}: ${Math.round(result.rps)} req/s, p99 ${round2(result.p99Ms)} ms`);
      }
    }
    const figures: Record<string, unknown> = {};
    for (const [name, entry] of measured) {
      if (entry.unexpected > entry.requests * UNEXPECTED_SHARE) {
        throw new Error(`${name}: ${entry.unexpected} of ${entry.requests} answers were not expected`);
      }
      const rps = medianInterval(entry.rps);
      figures[name] = {
        rps: Math.round(rps.median),
        rpsInterval: [Math.round(rps.low), Math.round(rps.high)],
        p99Ms: round2(medianInterval(entry.p99).median),
        cpuMicrosPerRequest: round2(medianInterval(entry.micros).median),
        requests: entry.requests,
        unexpected: entry.unexpected,
      };
    }
    return { figures, aims: [], programs: { wrk: ['wrk', '-v'], postgres: ['psql', '--version'] } };
  } finally {
    bare.kill();
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A ban of an address no other request names: 2001:db8:<block>:<n>::/64. */
function banBody(block: number): string {
  return `string.format('{"scope":"platform","cidr":"2001:db8:%x:%x::/64","reason":"other","durationSeconds":600}', ${block}, n)`;
}

const BARE_SERVER = `
const server = require('node:http').createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end('{"status":"ok"}');
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
`;
