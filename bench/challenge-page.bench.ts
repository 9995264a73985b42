// Challenge pages under a flood of clients that never answer: each level on kept connections beside the old edge, the script
// page on new ones and beside a flood of captchas; and, to tell what of it is Caddy's own, Caddy with a fixed answer of the
// header and size of the script page. Server and wrk share two cores, as an edge shares its machine.
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { ChallengeType } from '../proto/gen/svc/config/v1/protection_pb.js';
import { beside, besideFigures, judge, threeOf } from './lib/beside.ts';
import { type ChallengedEdge, startChallengedEdge } from './lib/challenged-edge.ts';
import { presentEdge } from './lib/edge.ts';
import { siteHost } from './lib/edge-state.ts';
import { cpuSeconds } from './lib/machine.ts';
import { OLD_COMMIT, oldEdge } from './lib/old-edge.ts';
import { startPlainCaddy } from './lib/plain-caddy.ts';
import { answers, type Server } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { type WrkRun, wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'challenge pages per second and level beside the old edge, their size, captcha images per second';
export const needs = ['wrk'];

const AIM_RPS = 25_000;
const AIM_BYTES = 6000;
const CONNECTIONS = 64;
const CPUS = '0,1';
const LEVELS = ['cookie302', 'js', 'pow', 'captcha'] as const;
type Level = (typeof LEVELS)[number];
// The present one between two of the old: what equal edges differ by in this run.
const EDGES = ['old', 'present', 'oldAgain'] as const;
type EdgeName = (typeof EDGES)[number];
const KINDS = [ChallengeType.COOKIE302, ChallengeType.JS, ChallengeType.POW, ChallengeType.CAPTCHA];
const BROWSER = { 'Accept-Encoding': 'gzip', 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0' };

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 12;
  const seconds = quick ? 1 : 2;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-page-'));
  const protection = KINDS.map((kind) => ({ underAttack: true, underAttackChallenge: kind }));
  const edges: Partial<Record<EdgeName, ChallengedEdge>> = {};
  const flood = (server: Server, level: Level, headers: Record<string, string> = {}, connections = CONNECTIONS) =>
    wrk(folder, {
      url: `http://127.0.0.1:${server.port}/`,
      seconds,
      connections,
      cpus: CPUS,
      headers: { ...BROWSER, ...headers, Host: siteHost(LEVELS.indexOf(level)) },
    });
  let caddy: Server | undefined;
  try {
    const old = await oldEdge();
    for (const name of EDGES) {
      const origin = { address: '127.0.0.1', port: 9 };
      const state = { folder: path.join(folder, name), sites: LEVELS.length, origin, protection };
      edges[name] = await startChallengedEdge(state, CPUS, name === 'present' ? presentEdge : old);
    }
    const edge = edges.present!;
    const { server } = edge;
    const url = `http://127.0.0.1:${server.port}/`;
    const bytes: Record<string, number> = {};
    for (const level of LEVELS) bytes[level] = (await page(url, level)).size;
    caddy = await startPlainCaddy(folder, CPUS, fixedAnswer(await page(url, 'js')), (port) =>
      answers(port, siteHost(0), 403),
    );
    const plain = caddy;
    const subjects: Subject[] = [
      ...LEVELS.flatMap((level) =>
        EDGES.map((name) => {
          const { server: asked } = edges[name]!;
          return { name: nameOf(name, level), pid: asked.pid, flood: () => flood(asked, level) };
        }),
      ),
      { name: 'jsNewConnections', pid: server.pid, flood: () => flood(server, 'js', { Connection: 'close' }) },
      {
        name: 'jsBesideCaptcha',
        pid: server.pid,
        flood: async () => {
          const half = CONNECTIONS / 2;
          const [js] = await Promise.all([flood(server, 'js', {}, half), flood(server, 'captcha', {}, half)]);
          return js;
        },
      },
      { name: 'caddy', pid: plain.pid, flood: () => flood(plain, 'js') },
    ];
    const runs = new Map<string, WrkRun[]>();
    const micros = new Map<string, number[]>();
    let images = 0;
    let captchaSeconds = 0;
    for (let round = 0; round < rounds; round++) {
      for (const { name, pid, flood: run } of round % 2 === 0 ? subjects : subjects.toReversed()) {
        const before = { cpu: cpuSeconds(pid), images: await imagesShown(edge) };
        const result = await run();
        // Every answer but the redirects is a 403, which wrk counts as an error.
        if (!name.includes('cookie302') && result.unexpected < result.requests * 0.999) {
          throw new Error(`${name}: ${result.unexpected} of ${result.requests} were challenged`);
        }
        if (name === 'captcha') {
          images += (await imagesShown(edge)) - before.images;
          captchaSeconds += result.seconds;
        }
        runs.set(name, [...(runs.get(name) ?? []), result]);
        const cost = ((cpuSeconds(pid) - before.cpu) / result.requests) * 1e6;
        micros.set(name, [...(micros.get(name) ?? []), cost]);
        log(
          `round ${round + 1} ${name}: ${Math.round(result.rps)}/s, ${round2(cost)} µs, p99 ${round2(result.p99Ms)} ms`,
        );
      }
    }
    const figures: Record<string, unknown> = {
      bytes,
      captchaImagesPerSecond: Math.round(images / captchaSeconds),
      oldCommit: OLD_COMMIT,
    };
    const rps = new Map<string, number>();
    for (const [name, results] of runs) {
      const interval = medianInterval(results.map((each) => each.rps));
      rps.set(name, interval.median);
      figures[name] = {
        rps: Math.round(interval.median),
        rpsInterval: [Math.round(interval.low), Math.round(interval.high)],
        p99Ms: round2(median(results.map((each) => each.p99Ms))),
        ...(name === 'jsBesideCaptcha' ? {} : { cpuMicros: round2(median(micros.get(name)!)) }),
      };
    }
    // Round by round: what disturbs a round disturbs both sides of it.
    const toCaddy = medianInterval(micros.get('caddy')!.map((cost, round) => cost / micros.get('js')![round]!));
    figures.caddyToJsMicros = threeOf(toCaddy);
    const judged = LEVELS.map((level) => {
      const [of, again, present] = (['old', 'oldAgain', 'present'] as const).map(
        (name) => micros.get(nameOf(name, level))!,
      );
      const compared = beside({ old: of!, oldAgain: again!, present: present! }, 'less');
      figures[`${level}ProcessorTime`] = besideFigures(compared);
      return judge(`processor time of a page, ${level}`, compared);
    });
    const slowest = Math.min(...LEVELS.map((level) => rps.get(level)!));
    return {
      figures,
      aims: [
        { aim: `≥ ${AIM_RPS}/s for each level on kept connections`, reached: slowest >= AIM_RPS },
        { aim: `≤ ${AIM_BYTES} bytes compressed`, reached: Object.values(bytes).every((each) => each <= AIM_BYTES) },
        ...judged.flatMap(({ aims }) => aims),
      ],
      programs: { wrk: ['wrk', '-v'], go: ['go', 'version'] },
      notes: ['the edge serves no TLS yet, so there is no figure for HTTP/2', ...judged.flatMap(({ notes }) => notes)],
    };
  } finally {
    await caddy?.stop();
    for (const { client, server } of Object.values(edges)) {
      client.close();
      await server.stop();
    }
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Subject {
  name: string;
  /** Whose processor time is counted. */
  pid: number;
  flood(): Promise<WrkRun>;
}

/** The present edge's floods are named after their level alone. */
const nameOf = (edge: EdgeName, level: Level): string => (edge === 'present' ? level : `${edge}.${level}`);

interface Page {
  header: http.IncomingHttpHeaders;
  size: number;
}

/** A page as it travels; of cookie302 the one for those who lose cookies. */
async function page(url: string, level: Level): Promise<Page> {
  for (let visit = 0; visit < 5; visit++) {
    const { status, ...shown } = await new Promise<Page & { status: number }>((resolve, reject) => {
      const headers = { ...BROWSER, host: siteHost(LEVELS.indexOf(level)) };
      const asked = http.request(`${url}size`, { headers, agent: false }, (response) => {
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, header: response.headers, size }));
      });
      asked.on('error', reject);
      asked.end();
    });
    if (status === 403) return shown;
  }
  throw new Error(`${level} showed no page`);
}

/** Caddy's handler that answers like a page, but always with the same. */
function fixedAnswer({ header, size }: Page): Record<string, unknown> {
  const { date, connection, 'content-length': _, ...kept } = header;
  const headers = Object.fromEntries(Object.entries(kept).map(([name, value]) => [name, [value].flat()]));
  return { handler: 'static_response', status_code: 403, headers, body: 'x'.repeat(size) };
}

/** Captchas shown with an image so far. */
async function imagesShown({ client }: ChallengedEdge): Promise<number> {
  const { challenges } = await client.getStatus();
  return Number(challenges!.served[3]! - challenges!.captchaFallbacks);
}
