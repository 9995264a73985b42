// Challenge pages under a flood of clients that never answer: each level on kept connections, the script page on new ones
// and beside a flood of captchas; and, to tell what of it is Caddy's own, Caddy with a fixed answer of the header and size
// of the script page. Server and wrk share two cores, as an edge shares its machine.
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { ChallengeType } from '../proto/gen/svc/config/v1/protection_pb.js';
import { type ChallengedEdge, startChallengedEdge } from './lib/challenged-edge.ts';
import { siteHost } from './lib/edge-state.ts';
import { cpuSeconds } from './lib/machine.ts';
import { startPlainCaddy } from './lib/plain-caddy.ts';
import { answers, type Server } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { type WrkRun, wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'challenge pages per second and level, their size, captcha images per second';

const AIM_RPS = 25_000;
const AIM_BYTES = 6000;
const CONNECTIONS = 64;
const CPUS = '0,1';
const LEVELS = ['cookie302', 'js', 'pow', 'captcha'] as const;
const KINDS = [ChallengeType.COOKIE302, ChallengeType.JS, ChallengeType.POW, ChallengeType.CAPTCHA];
const BROWSER = { 'Accept-Encoding': 'gzip', 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0' };

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 7;
  const seconds = quick ? 1 : 3;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-page-'));
  const protection = KINDS.map((kind) => ({ underAttack: true, underAttackChallenge: kind }));
  const edge = await startChallengedEdge(
    { folder, sites: LEVELS.length, origin: { address: '127.0.0.1', port: 9 }, protection },
    CPUS,
  );
  const { server } = edge;
  const url = `http://127.0.0.1:${server.port}/`;
  const flood = (
    level: (typeof LEVELS)[number],
    headers: Record<string, string> = {},
    connections = CONNECTIONS,
    to = url,
  ) =>
    wrk(folder, {
      url: to,
      seconds,
      connections,
      cpus: CPUS,
      headers: { ...BROWSER, ...headers, Host: siteHost(LEVELS.indexOf(level)) },
    });
  let caddy: Server | undefined;
  try {
    const bytes: Record<string, number> = {};
    for (const level of LEVELS) bytes[level] = (await page(url, level)).size;
    caddy = await startPlainCaddy(folder, CPUS, fixedAnswer(await page(url, 'js')), (port) =>
      answers(port, siteHost(0), 403),
    );
    const caddyUrl = `http://127.0.0.1:${caddy.port}/`;
    const subjects: Record<string, () => Promise<WrkRun>> = {
      ...Object.fromEntries(LEVELS.map((level) => [level, () => flood(level)])),
      jsNewConnections: () => flood('js', { Connection: 'close' }),
      jsBesideCaptcha: async () => {
        const [js] = await Promise.all([flood('js', {}, CONNECTIONS / 2), flood('captcha', {}, CONNECTIONS / 2)]);
        return js;
      },
      caddy: () => flood('js', {}, CONNECTIONS, caddyUrl),
    };
    const runs = new Map<string, WrkRun[]>();
    const micros = new Map<string, number[]>();
    let images = 0;
    let captchaSeconds = 0;
    for (let round = 0; round < rounds; round++) {
      for (const [name, subject] of Object.entries(subjects)) {
        const { pid } = name === 'caddy' ? caddy : server;
        const before = { cpu: cpuSeconds(pid), images: await imagesShown(edge) };
        const result = await subject();
        // Every answer but the redirects is a 403, which wrk counts as an error.
        if (name !== 'cookie302' && result.unexpected < result.requests * 0.999) {
          throw new Error(`${name}: ${result.unexpected} of ${result.requests} were challenged`);
        }
        if (name === 'captcha') {
          images += (await imagesShown(edge)) - before.images;
          captchaSeconds += result.seconds;
        }
        runs.set(name, [...(runs.get(name) ?? []), result]);
        const cost = ((cpuSeconds(pid) - before.cpu) / result.requests) * 1e6;
        micros.set(name, [...(micros.get(name) ?? []), cost]);
        log(`round ${round + 1} ${name}: ${Math.round(result.rps)}/s, p99 ${round2(result.p99Ms)} ms`);
      }
    }
    const figures: Record<string, unknown> = { bytes, captchaImagesPerSecond: Math.round(images / captchaSeconds) };
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
    figures.caddyToJsMicros = [round2(toCaddy.low), round2(toCaddy.median), round2(toCaddy.high)];
    const slowest = Math.min(...LEVELS.map((level) => rps.get(level)!));
    return {
      figures,
      aims: [
        { aim: `≥ ${AIM_RPS}/s for each level on kept connections`, reached: slowest >= AIM_RPS },
        { aim: `≤ ${AIM_BYTES} bytes compressed`, reached: Object.values(bytes).every((each) => each <= AIM_BYTES) },
      ],
      programs: { wrk: ['wrk', '-v'], go: ['go', 'version'] },
      notes: ['the edge serves no TLS yet, so there is no figure for HTTP/2'],
    };
  } finally {
    edge.client.close();
    await caddy?.stop();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Page {
  header: http.IncomingHttpHeaders;
  size: number;
}

/** A page as it travels; of cookie302 the one for those who lose cookies. */
async function page(url: string, level: (typeof LEVELS)[number]): Promise<Page> {
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
