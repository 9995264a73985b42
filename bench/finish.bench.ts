// What counting costs a request: the Go benchmark of its stages, and requests a second of an edge whose metrics are scraped
// each second with figures of 200 sites, beside edges without. Each proxy has core 0 for itself while it is measured; origin
// (nginx) and wrk have core 1.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { GO_BUILD_FLAGS, goEnvironment, needGo } from '../bin/lib/caddy.ts';
import { run as runCommand } from '../bin/lib/commands.ts';
import { root } from '../bin/lib/root.ts';
import { beside, besideFigures, judge } from './lib/beside.ts';
import { edgeCommand, presentEdge } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { cpuSeconds } from './lib/machine.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { median } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'what counting and metrics cost a request';
export const needs = ['nginx', 'wrk'];

const AIM_NS = 300;
const SITES = 200;
const CONNECTIONS = 64;
const PROXY_CPU = '0';
const LOAD_CPU = '1';
const SCRAPE_MS = 1000;
const GO_TIMEOUT_MS = 15 * 60_000;

interface Subject {
  server: Server;
  /** Where its metrics are; undefined where they are off. */
  metricsPort: number | undefined;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const counted = await counting(quick ? 3 : 10);
  log(`counting: ${counted.map(({ ns }) => ns).join(', ')} ns a request`);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-finish-'));
  const started: Server[] = [];
  try {
    const rounds = quick ? 3 : 24;
    const subjects = await startSubjects(folder, started);
    const rps = new Map<string, number[]>(Object.keys(subjects).map((name) => [name, []]));
    const micros = new Map<string, number[]>(Object.keys(subjects).map((name) => [name, []]));
    const names = Object.keys(subjects) as (keyof typeof subjects)[];
    // Round -1 warms connections and caches.
    for (let round = -1; round < rounds; round++) {
      for (let turn = 0; turn < names.length; turn++) {
        const name = names[(round + 1 + turn) % names.length]!;
        const { requests, cpuMicros } = await measure(folder, subjects[name], round < 0 || quick ? 1 : 2);
        if (round < 0) continue;
        rps.get(name)!.push(requests);
        micros.get(name)!.push(cpuMicros);
        log(`round ${round + 1} ${name}: ${Math.round(requests)} req/s, ${cpuMicros.toFixed(2)} µs`);
      }
    }
    const rates = beside({ old: rps.get('off')!, oldAgain: rps.get('offAgain')!, present: rps.get('on')! }, 'more');
    const times = beside(
      { old: micros.get('off')!, oldAgain: micros.get('offAgain')!, present: micros.get('on')! },
      'less',
    );
    const judged = [judge('requests per second with metrics', rates), judge('processor time with metrics', times)];
    const ns = counted.map((each) => each.ns).sort((a, b) => a - b);
    return {
      figures: {
        countingNs: { least: ns[0], median: median(ns), most: ns.at(-1) },
        countingAllocations: Math.max(...counted.map(({ allocations }) => allocations)),
        requestsPerSecond: besideFigures(rates),
        processorTime: besideFigures(times),
        cpuMicrosPerRequest: Object.fromEntries([...micros].map(([name, each]) => [name, median(each)])),
      },
      aims: [
        // Of several runs the least is what the machine disturbed least.
        { aim: `counting ≤ ${AIM_NS} ns a request (least of ${ns.length})`, reached: ns[0]! <= AIM_NS },
        { aim: 'counting allocates nothing', reached: counted.every(({ allocations }) => allocations === 0) },
        ...judged.flatMap(({ aims }) => aims),
      ],
      notes: [...judged.flatMap(({ notes }) => notes), 'old is the edge without metrics'],
      programs: { nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], go: ['go', 'version'] },
    };
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs BenchmarkFinish so many times on one processor. */
async function counting(times: number): Promise<{ ns: number; allocations: number }[]> {
  const args = ['test', ...GO_BUILD_FLAGS, './edge/', '-run', 'NONE', '-bench', 'BenchmarkFinish$', '-benchmem'];
  const { stdout } = await runCommand(await needGo(), [...args, '-cpu', '1', '-count', String(times)], {
    cwd: path.join(root, 'agents/caddy'),
    env: goEnvironment(process),
    timeout: GO_TIMEOUT_MS,
    maxBuffer: 1 << 24,
  });
  const found = [...stdout.matchAll(/^BenchmarkFinish\s+\d+\s+([\d.]+) ns\/op\s+\d+ B\/op\s+(\d+) allocs\/op/gm)];
  if (found.length !== times) throw new Error(`the benchmark answered:\n${stdout}`);
  return found.map(([, ns, allocations]) => ({ ns: Number(ns), allocations: Number(allocations) }));
}

async function startSubjects(folder: string, started: Server[]): Promise<Record<'off' | 'on' | 'offAgain', Subject>> {
  const start = async (...options: Parameters<typeof startServer>): Promise<Server> => {
    const server = await startServer(...options);
    started.push(server);
    return server;
  };
  const originPort = await freePort();
  const origin = `  server { listen 127.0.0.1:${originPort} backlog=4096; location / { return 200 "${'x'.repeat(1024)}"; } }`;
  await start('origin', LOAD_CPU, nginxCommand(path.join(folder, 'origin'), origin), originPort, () =>
    answers(originPort, 'origin'),
  );
  const edge = async (name: string, hasMetrics: boolean): Promise<Subject> => {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const state = path.join(folder, name);
    writeEdgeState({ folder: state, sites: SITES, origin: { address: '127.0.0.1', port: originPort } });
    const more = hasMetrics ? { metricsListen: `127.0.0.1:${metricsPort}`, metricsSites: ['all'] } : {};
    const command = edgeCommand(state, port, presentEdge, undefined, more);
    const server = await start(name, PROXY_CPU, command, port, () => answers(port, siteHost(0)));
    return { server, metricsPort: hasMetrics ? metricsPort : undefined };
  };
  return { off: await edge('off', false), on: await edge('on', true), offAgain: await edge('offAgain', false) };
}

async function measure(
  folder: string,
  { server, metricsPort }: Subject,
  seconds: number,
): Promise<{ requests: number; cpuMicros: number }> {
  const scraper = metricsPort === undefined ? undefined : setInterval(() => void scrape(metricsPort), SCRAPE_MS);
  try {
    const before = cpuSeconds(server.pid);
    const { rps, requests, unexpected } = await wrk(folder, {
      url: `http://127.0.0.1:${server.port}/`,
      seconds,
      connections: CONNECTIONS,
      cpus: LOAD_CPU,
      hosts: Array.from({ length: SITES }, (_, index) => siteHost(index)),
    });
    if (unexpected > 0) throw new Error(`${unexpected} of ${requests} answers were not expected`);
    return { requests: rps, cpuMicros: ((cpuSeconds(server.pid) - before) / requests) * 1e6 };
  } finally {
    clearInterval(scraper);
  }
}

async function scrape(port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  if (!(await response.text()).includes('svc_edge_connections ')) throw new Error('no metrics');
}
