// One of three origins fails in each way and comes back, while visitors go on reading: our edge beside HAProxy, nginx and
// Caddy. Then plain proxying to an origin over HTTP/2 beside HTTP/1.1.
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { edgeCommand } from './lib/edge.ts';
import { writeEdgeState } from './lib/edge-state.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { medianInterval, percentile, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import { FAULTS, type Fault, FaultyOrigin } from './origins/faulty-origin.ts';
import { HOST, INTERVAL_S, PROXIES, READ_TIMEOUT_MS } from './origins/proxies.ts';
import { type Outcome, visit, visits } from './origins/visitors.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'one of three origins fails and comes back, beside HAProxy, nginx and Caddy; origins over HTTP/2';
export const needs = ['haproxy', 'nginx', 'wrk'];

const NAMES = ['a', 'b', 'faulty'] as const;
const VISITORS = 16;
/** Visits before the origin fails, as a share of those after it. */
const FAILS_AFTER = 0.1;
const BACK_WITHIN_MS = 30_000;
/** What the machine adds to a time that a setting bounds. */
const SLACK_MS = 500;
const CONNECTIONS = 64;

interface Figures {
  failed: number;
  cut: number;
  longestMs: number;
  p99Ms: number;
  /** Until the origin responds again; null: not within 30 s. */
  backMs: number | null;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-origins-'));
  const origins: FaultyOrigin[] = [];
  try {
    for (const name of NAMES) origins.push(new FaultyOrigin(name, await freePort()));
    for (const origin of origins) await origin.become(null);
    const figures: Record<string, Record<string, Figures>> = {};
    for (const [name, start] of Object.entries(PROXIES)) {
      const proxy = await start(
        path.join(folder, name),
        origins.map(({ port }) => port),
      );
      try {
        figures[name] = {};
        for (const fault of FAULTS) {
          figures[name][fault] = await suffer(proxy, origins.at(-1)!, fault, quick ? 1000 : 10_000);
          log(`${name}, ${fault}: ${JSON.stringify(figures[name][fault])}`);
        }
      } finally {
        await proxy.stop();
      }
    }
    const protocols = await compareProtocols(folder, quick, log);
    return { figures: { ...figures, protocols }, aims: aimsOf(figures, protocols), programs: PROGRAMS };
  } finally {
    for (const origin of origins) await origin.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const PROGRAMS = { haproxy: ['haproxy', '-v'], nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], go: ['go', 'version'] };

async function suffer(proxy: Server, origin: FaultyOrigin, fault: Fault, requests: number): Promise<Figures> {
  await backMs(proxy);
  const to = { port: proxy.port, host: HOST };
  const before = await visits(to, requests * FAILS_AFTER, VISITORS);
  if (before.some(({ status }) => status !== 200)) throw new Error(`${proxy.name} failed before its origin did`);
  const reading = visits(to, requests, VISITORS);
  await origin.become(fault);
  const outcomes = await reading;
  await origin.become(null);
  const times = outcomes.map(({ milliseconds }) => milliseconds);
  return {
    failed: outcomes.filter(hasFailed).length,
    cut: outcomes.filter(({ cut }) => cut).length,
    longestMs: Math.round(Math.max(...times)),
    p99Ms: round2(percentile(times, 99)),
    backMs: await backMs(proxy),
  };
}

/** A response that had begun cannot be asked for again. */
const hasFailed = ({ status, cut }: Outcome) => !cut && (status === 0 || status >= 500);

/** Until the origin that fails responds to a visitor. */
async function backMs({ port }: Server): Promise<number | null> {
  const begun = performance.now();
  const agent = new Agent({ keepAlive: true });
  try {
    while (performance.now() - begun < BACK_WITHIN_MS) {
      const { origin, status } = await visit({ port, host: HOST, agent });
      if (origin === NAMES.at(-1) && status === 200) return Math.round(performance.now() - begun);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return null;
  } finally {
    agent.destroy();
  }
}

/** Requests per second to an origin over HTTP/2, divided by those over HTTP/1.1. */
async function compareProtocols(folder: string, quick: boolean, log: (line: string) => void) {
  const port = await freePort();
  const body = 'x'.repeat(1024);
  const http = (more: string) =>
    `  server { listen 127.0.0.1:${port} ${more} backlog=4096; location / { return 200 "${body}"; } }`;
  const rps: Record<'http1' | 'http2', number[]> = { http1: [], http2: [] };
  for (let round = 0; round < (quick ? 1 : 10); round++) {
    for (const protocol of round % 2 === 0 ? (['http1', 'http2'] as const) : (['http2', 'http1'] as const)) {
      const name = `${protocol}-${round}`;
      const more = protocol === 'http2' ? 'http2' : '';
      // nginx 1.22 has no socket that speaks both without TLS; a connection over HTTP/2 ends after 1,000 requests by default.
      const config = `  http2_max_concurrent_streams 256;\n${http(more)}`;
      const started: Server[] = [];
      try {
        const up = protocol === 'http1' ? () => answers(port, HOST) : async () => true;
        started.push(
          await startServer('origin', '1', nginxCommand(path.join(folder, `origin-${name}`), config), port, up),
        );
        const edgePort = await freePort();
        const state = path.join(folder, name);
        const pool = { http2: protocol === 'http2', keepaliveMaxRequests: 100_000 };
        writeEdgeState({ folder: state, sites: 1, origin: { address: '127.0.0.1', port }, pool });
        const ready = () => answers(edgePort, HOST);
        started.push(await startServer('edge', '0', edgeCommand(state, edgePort), edgePort, ready));
        const asked = { url: `http://127.0.0.1:${edgePort}/`, connections: CONNECTIONS, cpus: '1', hosts: [HOST] };
        await wrk(folder, { ...asked, seconds: 1 });
        const { rps: measured, unexpected } = await wrk(folder, { ...asked, seconds: quick ? 1 : 3 });
        if (unexpected > 0) throw new Error(`${protocol}: ${unexpected} answers were not expected`);
        rps[protocol].push(measured);
        log(`${protocol}: ${Math.round(measured)} requests per second`);
      } finally {
        for (const server of started.reverse()) await server.stop();
      }
    }
  }
  const ratio = medianInterval(rps.http2.map((value, round) => value / rps.http1[round]!));
  return { http1: rps.http1.map(Math.round), http2: rps.http2.map(Math.round), ratio: round2(ratio.median) };
}

function aimsOf(figures: Record<string, Record<string, Figures>>, { ratio }: { ratio: number }): BenchResult['aims'] {
  const own = figures.edge!;
  const all = Object.values(own);
  return [
    { aim: '0 requests failed whose response had not begun', reached: all.every(({ failed }) => failed === 0) },
    {
      aim: `a hang takes at most the read timeout (${READ_TIMEOUT_MS} ms and ${SLACK_MS} ms)`,
      reached: own.hangs!.longestMs <= READ_TIMEOUT_MS + SLACK_MS,
    },
    {
      aim: `back in service within one interval (${INTERVAL_S} s and ${SLACK_MS} ms)`,
      reached: all.every(({ backMs: time }) => time !== null && time <= INTERVAL_S * 1000 + SLACK_MS),
    },
    { aim: 'origins over HTTP/2 ≥ 0.9 × requests per second of HTTP/1.1', reached: ratio >= 0.9 },
  ];
}
