// Answers compressed on their way: our edge with each coding beside itself without any, and beside nginx and its gzip. Each
// proxy has core 0 for itself while it is measured; origin (nginx) and wrk have core 1.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import type { SiteCompression } from '../proto/gen/svc/config/v1/https_pb.js';
import { edgeCommand } from './lib/edge.ts';
import { type EdgeState, siteHost, writeEdgeState } from './lib/edge-state.ts';
import { cpuSeconds, residentMiB } from './lib/machine.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'pages of 64 KiB compressed by our edge and by nginx, one core each';
export const needs = ['nginx', 'wrk'];

const PAGE_BYTES = 64 << 10;
const MB = 1e6;
const PROXY_CPU = '0';
const LOAD_CPU = '1';
/** As many Brotli encoders as an edge on one core lets work at once: none of them is passed over. */
const CONNECTIONS = 2;
const HOST = siteHost(0);

interface Subject {
  server: Server;
  coding: string;
}

interface Measured {
  mbPerSecond: number[];
  mbPerCpuSecond: number[];
  residentMiB: number[];
}

type Settings = NonNullable<EdgeState['compression']>;

const coding = (name: 'gzip' | 'brotli' | 'zstd', level: number): Settings => ({
  [name]: { enabled: true, level, minLength: 256, types: [] } as unknown as SiteCompression['gzip'],
});

const EDGES: readonly (readonly [string, string, Settings])[] = [
  ['edge none', 'identity', {}],
  ['edge gzip 1', 'gzip', coding('gzip', 1)],
  ['edge gzip 6', 'gzip', coding('gzip', 6)],
  ['edge br 4', 'br', coding('brotli', 4)],
  ['edge br 6', 'br', coding('brotli', 6)],
  ['edge zstd 1', 'zstd', coding('zstd', 1)],
  ['edge zstd 3', 'zstd', coding('zstd', 3)],
];
const NGINX: readonly (readonly [string, string, string])[] = [
  ['nginx none', 'identity', ''],
  ['nginx gzip 1', 'gzip', 'gzip on; gzip_comp_level 1; gzip_proxied any;'],
  ['nginx gzip 6', 'gzip', 'gzip on; gzip_comp_level 6; gzip_proxied any;'],
];

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 9;
  const seconds = quick ? 1 : 2;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-compression-'));
  const started: Server[] = [];
  try {
    const subjects = await startSubjects(folder, started);
    const sizes = new Map<string, number>();
    for (const [name, { server, coding: accepted }] of subjects) {
      const { bytes, encoding } = await fetchPage(server.port, accepted);
      if ((encoding ?? 'identity') !== accepted) throw new Error(`${name} answers with ${encoding}`);
      sizes.set(name, bytes);
    }
    const all = new Map<string, Measured>();
    for (let round = -1; round < rounds; round++) {
      const names = round % 2 === 0 ? [...subjects.keys()] : [...subjects.keys()].reverse();
      for (const name of names) {
        const { server, coding: accepted } = subjects.get(name)!;
        const before = cpuSeconds(server.pid);
        const { requests, rps, unexpected } = await wrk(folder, {
          url: `http://127.0.0.1:${server.port}/`,
          seconds: round < 0 ? 1 : seconds,
          connections: CONNECTIONS,
          cpus: LOAD_CPU,
          headers: { Host: HOST, 'Accept-Encoding': accepted },
        });
        if (unexpected > 0) throw new Error(`${name}: ${unexpected} of ${requests} answers were not expected`);
        // Round -1 warms connections and encoders.
        if (round < 0) continue;
        const figures = all.get(name) ?? { mbPerSecond: [], mbPerCpuSecond: [], residentMiB: [] };
        all.set(name, figures);
        figures.mbPerSecond.push((rps * PAGE_BYTES) / MB);
        figures.mbPerCpuSecond.push((requests * PAGE_BYTES) / MB / (cpuSeconds(server.pid) - before));
        figures.residentMiB.push(residentMiB(server.pid));
        log(`round ${round + 1} ${name}: ${Math.round(figures.mbPerSecond.at(-1)!)} MB/s`);
      }
    }
    return result(all, sizes);
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startSubjects(folder: string, started: Server[]): Promise<Map<string, Subject>> {
  const start = async (...options: Parameters<typeof startServer>) => {
    const server = await startServer(...options);
    started.push(server);
    return server;
  };
  const root = path.join(folder, 'pages');
  mkdirSync(root);
  writeFileSync(path.join(root, 'index.html'), page());
  const originPort = await freePort();
  const origin = `  types { text/html html; } server { listen 127.0.0.1:${originPort}; root ${root}; }`;
  await start('origin', LOAD_CPU, nginxCommand(path.join(folder, 'origin'), origin), originPort, () =>
    answers(originPort, HOST),
  );
  const subjects = new Map<string, Subject>();
  for (const [name, accepted, compression] of EDGES) {
    const port = await freePort();
    const state = path.join(folder, name.replaceAll(' ', '-'));
    writeEdgeState({ folder: state, sites: 1, origin: { address: '127.0.0.1', port: originPort }, compression });
    const server = await start(name, PROXY_CPU, edgeCommand(state, port), port, () => answers(port, HOST));
    subjects.set(name, { server, coding: accepted });
  }
  for (const [name, accepted, gzip] of NGINX) {
    const port = await freePort();
    const proxy = `  upstream origin { server 127.0.0.1:${originPort}; keepalive 16; keepalive_requests 10000000; }
  server { listen 127.0.0.1:${port}; ${gzip} location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Accept-Encoding ""; } }`;
    const command = nginxCommand(path.join(folder, name.replaceAll(' ', '-')), proxy);
    const server = await start(name, PROXY_CPU, command, port, () => answers(port, HOST));
    subjects.set(name, { server, coding: accepted });
  }
  return subjects;
}

/** A page such as programs make: markup that repeats around words and numbers that do not. The same in every run. */
function page(): string {
  const words = 'the quick brown fox jumps over lazy dogs while many others look on and write about it'.split(' ');
  let seed = 1;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  let html = '<!doctype html><title>Stories</title>';
  while (html.length < PAGE_BYTES) {
    const text = Array.from({ length: 12 }, () => words[random(words.length)]).join(' ');
    html += `<article class="story" id="s${random(1_000_000)}"><h2>${random(1000)}</h2><p>${text}</p></article>\n`;
  }
  return html.slice(0, PAGE_BYTES);
}

function fetchPage(port: number, accepted: string): Promise<{ bytes: number; encoding: string | undefined }> {
  return new Promise((resolve, reject) => {
    const headers = { host: HOST, 'accept-encoding': accepted };
    const request = http.get({ host: '127.0.0.1', port, headers, agent: false }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ bytes, encoding: response.headers['content-encoding'] }));
    });
    request.on('error', reject);
  });
}

function result(all: Map<string, Measured>, sizes: Map<string, number>): BenchResult {
  const figures: Record<string, unknown> = {};
  for (const [name, measured] of all) {
    const speed = medianInterval(measured.mbPerSecond);
    figures[name] = {
      mbPerSecond: Math.round(speed.median),
      mbPerSecondInterval: [Math.round(speed.low), Math.round(speed.high)],
      mbPerCpuSecond: Math.round(median(measured.mbPerCpuSecond)),
      residentMiB: round2(median(measured.residentMiB)),
      timesSmaller: round2(PAGE_BYTES / sizes.get(name)!),
    };
  }
  const of = (name: string) => all.get(name)!;
  const toNginx = (level: number) => {
    const nginx = of(`nginx gzip ${level}`).mbPerSecond;
    return medianInterval(of(`edge gzip ${level}`).mbPerSecond.map((value, round) => value / nginx[round]!)).median;
  };
  const memory = Math.max(...EDGES.map(([name]) => median(of(name).residentMiB) - median(of('edge none').residentMiB)));
  figures.edgeToNginxGzip = { level1: round2(toNginx(1)), level6: round2(toNginx(6)) };
  figures.mostMiBOfACoding = round2(memory);
  return {
    figures,
    aims: [
      { aim: 'gzip 1 ≥ 1.0 × nginx gzip 1, MB/s (median of rounds)', reached: toNginx(1) >= 1 },
      { aim: 'gzip 6 ≥ 1.0 × nginx gzip 6, MB/s (median of rounds)', reached: toNginx(6) >= 1 },
      { aim: 'no coding takes more than 32 MiB beyond an edge without any', reached: memory <= 32 },
    ],
    programs: { nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], go: ['go', 'version'] },
  };
}
