// Processor time of proxied requests with 64 rules of their site and 32 of the platform, none of which matches, beside the
// same without rules: two edges in turns, and one more without rules as what equal edges differ by. The edges have core 0;
// origin (nginx) and wrk have core 1.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Phase } from '../contract/expression/phases.ts';
import { checkRule, ruleMessage } from '../models/rules/rule-message.ts';
import type { Rule } from '../proto/gen/svc/config/v1/rules_pb.js';
import { threeOf } from './lib/beside.ts';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { cpuSeconds } from './lib/machine.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'proxied requests with 96 rules that do not match beside the same without rules';
export const needs = ['nginx', 'wrk'];

const AIM_MICROS = 10;
const SITE_RULES = 64;
const PLATFORM_RULES = 32;
/** Every sixth rule has a pattern: 16 of 96. */
const PATTERN_EVERY = 6;
const CONNECTIONS = 64;
const EDGE_CPU = '0';
const LOAD_CPU = '1';
const TARGET = '/shop/items/123456?utm_source=bench&page=2&sort=price';
const HEADERS = {
  Host: siteHost(0),
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
  Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'Accept-Language': 'en-US,en;q=0.9',
  Referer: 'https://www.example.com/shop/',
  Cookie: 'session=0123456789abcdef0123456789abcdef; theme=dark; consent=1',
};

// What people ask for, in turn. None holds for the request above.
const CONDITIONS: readonly ((n: number) => string)[] = [
  (n) => `http.request.uri.path eq "/admin/${n}"`,
  (n) => `http.request.method eq "POST" and starts_with(http.request.uri.path, "/api/v${n}/")`,
  (n) => `http.user_agent contains "crawler-${n}" or http.referer contains "spam-${n}.example"`,
  (n) => `ip.src in {192.0.2.${n} 198.51.100.0/24 2001:db8:${n}::/48} and http.host ne "www.example.com"`,
  (n) => `http.request.cookies["beta-${n}"] eq "1" or http.request.uri.args["preview"] eq "${n}"`,
];
const pattern = (n: number) => `http.user_agent matches "(^|[^a-z])(scanner|harvest)${n}/[0-9]+\\\\.[0-9]+"`;
const PHASES: readonly [Phase, Record<string, unknown>][] = [
  ['request-transform', { kind: 'request_header', header: 'x-matched', value: '1', expression: '', remove: false }],
  ['waf-custom', { kind: 'block', statusCode: 403 }],
  ['config', { kind: 'config', cacheBypass: true }],
  ['ratelimit', { kind: 'rate_limit', limit: 100, windowSeconds: 60, key: 'ip.src', statusCode: 429 }],
];

function rulesOf(count: number, from: number): Rule[] {
  return Array.from({ length: count }, (_, index) => {
    const n = from + index;
    const [phase, action] = PHASES[n % PHASES.length]!;
    const expression = n % PATTERN_EVERY === 0 ? pattern(n) : CONDITIONS[n % CONDITIONS.length]!(n);
    const id = `rule-${n}`;
    const checked = checkRule({ id, name: id, phase, expression, enabled: true, action: action as never });
    if ('error' in checked) throw new Error(`${expression}: ${checked.error.message}`);
    return ruleMessage(checked, new Map());
  });
}

const EDGES = ['plain', 'ruled', 'plainAgain'] as const;
type EdgeName = (typeof EDGES)[number];

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 4 : 20;
  const seconds = quick ? 1 : 2;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-rules-'));
  const originPort = await freePort();
  const page = `  server { listen 127.0.0.1:${originPort} backlog=4096; location / { return 200 "${'x'.repeat(1024)}"; } }`;
  const command = nginxCommand(path.join(folder, 'origin'), page);
  const origin = await startServer('origin', LOAD_CPU, command, originPort, () => answers(originPort, 'origin'));
  const edges = new Map<EdgeName, Server>();
  try {
    for (const name of EDGES) {
      const port = await freePort();
      const state = { folder: path.join(folder, name), sites: 1, origin: { address: '127.0.0.1', port: originPort } };
      const rules =
        name === 'ruled' ? { rules: rulesOf(SITE_RULES, 0), platformRules: rulesOf(PLATFORM_RULES, SITE_RULES) } : {};
      writeEdgeState({ ...state, ...rules });
      const ready = () => answers(port, siteHost(0));
      edges.set(name, await startServer(name, EDGE_CPU, edgeCommand(state.folder, port), port, ready));
    }
    const micros: Record<EdgeName, number[]> = { plain: [], ruled: [], plainAgain: [] };
    for (let round = -1; round < rounds; round++) {
      // Another one first in each round.
      for (const name of round % 2 === 0 ? EDGES : EDGES.toReversed()) {
        const { pid, port } = edges.get(name)!;
        const before = cpuSeconds(pid);
        const url = `http://127.0.0.1:${port}${TARGET}`;
        const result = await wrk(folder, { url, seconds, connections: CONNECTIONS, cpus: LOAD_CPU, headers: HEADERS });
        if (result.unexpected > result.requests / 1000) throw new Error(`${name}: ${result.unexpected} were refused`);
        if (round < 0) continue;
        micros[name].push(((cpuSeconds(pid) - before) / result.requests) * 1e6);
        log(`round ${round + 1} ${name}: ${round2(micros[name].at(-1)!)} µs of the edge`);
      }
    }
    return result(micros);
  } finally {
    for (const edge of edges.values()) await edge.stop();
    await origin.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function result({ plain, ruled, plainAgain }: Record<EdgeName, number[]>): BenchResult {
  // Round by round: what disturbs a round disturbs all of it.
  const more = medianInterval(ruled.map((each, round) => each - (plain[round]! + plainAgain[round]!) / 2));
  const equal = medianInterval(plainAgain.map((each, round) => each - plain[round]!));
  return {
    figures: {
      plainMicros: round2(median(plain)),
      ruledMicros: round2(median(ruled)),
      moreMicros: threeOf(more),
      equalEdgesDifferMicros: threeOf(equal),
      rules: { site: SITE_RULES, platform: PLATFORM_RULES, withPattern: (SITE_RULES + PLATFORM_RULES) / PATTERN_EVERY },
    },
    aims: [{ aim: `≤ ${AIM_MICROS} µs of processor time more a request`, reached: more.median <= AIM_MICROS }],
    notes: [],
    programs: { nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], go: ['go', 'version'] },
  };
}
