// Requests that the WAF inspects: our edge beside nginx with libmodsecurity and the same rule set. Each has core 0 for itself
// while it is measured; origin (nginx) and wrk have core 1. All requests differ, so that no verdict is remembered.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { caddySources } from '../bin/lib/caddy.ts';
import { installPackages } from '../bin/lib/debian.ts';
import { WafMode } from '../proto/gen/svc/config/v1/waf_pb.js';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { cpuSeconds, peakMiB, residentMiB } from './lib/machine.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'requests inspected by our WAF and by libmodsecurity, with the same rules, one core each';
export const needs = ['nginx', 'wrk'];

const PROXY_CPU = '0';
const LOAD_CPU = '1';
const CONNECTIONS = 4;
const CROWD = 64;
/** Of what a server can do, for times of answers. */
const SHARE = 0.6;
const PACKAGE = 'libnginx-mod-http-modsecurity';
const MODULE = '/usr/lib/nginx/modules/ngx_http_modsecurity_module.so';
const HOST = siteHost(0);
const HEADERS = {
  Host: HOST,
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
  Accept: 'text/html,application/xhtml+xml',
};
const WORDS = 'quick brown foxes jump over lazy dogs while many others look on and write about it later'.split(' ');

interface Shape {
  name: string;
  type?: string;
  /** Path or body, in which each @ is another number in each request. */
  text: string;
  /** How many times nginx, at least. */
  aim: number;
  /** So few of it fit into a second that a round is as many requests, one after the other. */
  count?: number;
}

const words = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => WORDS[(from + at * 7) % WORDS.length]).join(' ');
const fields = (count: number, size: number) =>
  Array.from({ length: count }, (_, at) => `field${at}=${words(99, at).slice(0, size).replaceAll(' ', '+')}@`).join(
    '&',
  );

function json(bytes: number): string {
  const items: string[] = [];
  for (let length = 0, at = 0; length < bytes; at++) {
    items.push(`{"id":${at},"title":"${words(4, at)} @","text":"${words(18, at)}","price":12.5,"tags":["new","sale"]}`);
    length += items.at(-1)!.length + 1;
  }
  return `{"items":[${items.join(',')}]}`;
}

const FORM = 'application/x-www-form-urlencoded';
const SHAPES: readonly Shape[] = [
  { name: 'GET with arguments', text: `/list?page=@&sort=name&q=${words(3).replaceAll(' ', '+')}+@&lang=en`, aim: 1 },
  { name: 'form of 1 KB', type: FORM, text: fields(8, 110), aim: 1 },
  { name: 'form of 10 KB', type: FORM, text: fields(50, 190), aim: 0.7 },
  { name: 'JSON of 2 KB', type: 'application/json', text: json(2 << 10), aim: 0.7 },
  { name: 'JSON of 128 KB', type: 'application/json', text: json((128 << 10) - 512), aim: 0.7, count: 5 },
];

/** Lua of requests of which no two are alike. */
function script({ type, text }: Shape): string {
  const head = Object.entries(HEADERS).map(([name, value]) => `wrk.headers["${name}"] = ${JSON.stringify(value)}`);
  if (type) head.push(`wrk.headers["Content-Type"] = "${type}"`);
  const parts = text.split('@').map((part) => `[==[${part}]==]`);
  return `${head.join('\n')}
local parts = {${parts.join(',')}}
local at = 0
request = function()
  at = at + 1
  local text = table.concat(parts, tostring(at))
  return ${type ? 'wrk.format("POST", "/save", nil, text)' : 'wrk.format("GET", text)'}
end
`;
}

/**
 * Lua of waits before each request: many connections that think for a while, of no even length, ask together about as many
 * requests a second.
 */
const pace = (rate: number) => `
function delay()
  return math.floor(-math.log(1 - math.random()) * ${(CROWD / rate) * 1000} + 0.5)
end
`;

/** The same requests, each to the next of the first sites. */
const everySite = (lua: string, sites: number) =>
  lua.replace(
    'request = function()\n',
    `request = function()\n  wrk.headers["Host"] = "site-" .. at % ${sites} .. ".bench.example"\n`,
  );

interface Paced {
  /** What of the capacity was asked for. */
  share: number[];
  p50Ms: number[];
  p99Ms: number[];
}

interface Repeated {
  /** How many times the requests per second of those that differ. */
  ratio: number[];
  cpuMs: number[];
}

interface Measured {
  rps: number[];
  cpuMs: number[];
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 9;
  const seconds = quick ? 1 : 2;
  await installPackages([PACKAGE]);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-waf-'));
  const started: Server[] = [];
  try {
    const start = async (...options: Parameters<typeof startServer>) => {
      const server = await startServer(...options);
      started.push(server);
      return server;
    };
    const originPort = await freePort();
    const origin = `  server { listen 127.0.0.1:${originPort}; client_max_body_size 0; location / { return 200 "ok"; } }`;
    await start('origin', LOAD_CPU, nginxCommand(path.join(folder, 'origin'), origin), originPort, () =>
      answers(originPort, HOST),
    );
    const edge = async (name: string, sites: number, inspected: number) => {
      const port = await freePort();
      const state = path.join(folder, name);
      const settings = { mode: WafMode.BLOCK, paranoiaLevel: 1, anomalyThreshold: 5, requestBodyLimit: 134_217_728 };
      writeEdgeState({
        folder: state,
        sites,
        origin: { address: '127.0.0.1', port: originPort },
        waf: Array.from({ length: inspected }, () => settings),
      });
      return start(name, PROXY_CPU, edgeCommand(state, port), port, () => answers(port, HOST));
    };
    const subjects = new Map([
      ['edge', await edge('edge', 1, 1)],
      ['nginx', await startNginx(folder, start, originPort)],
    ]);
    for (const [name, { port }] of subjects) await mustBlock(name, port);

    // On a busy machine a request may wait longer for its turn than it may, and is refused: it counts as none.
    let refused = 0;
    const load = async (server: Server, lua: string, time = seconds, connections = CONNECTIONS) => {
      const one = await crowd(server, lua, time, connections);
      if (one.served * 2 < one.requests)
        throw new Error(`${server.name} serves ${one.served} of ${one.requests} requests`);
      refused += one.unexpected;
      return one;
    };
    /** Requests of which any number may be refused. */
    const crowd = async ({ port, pid }: Server, script: string, time: number, connections: number) => {
      const before = cpuSeconds(pid);
      const url = `http://127.0.0.1:${port}/`;
      const one = await wrk(folder, { url, seconds: time, connections, cpus: LOAD_CPU, timeoutSeconds: 60, script });
      const served = one.requests - one.unexpected;
      return { ...one, served, rps: served / one.seconds, cpuMs: ((cpuSeconds(pid) - before) * 1000) / served };
    };
    const all = new Map<string, Measured>();
    for (const shape of SHAPES) {
      for (const server of subjects.values()) await mustPass(server, shape, 0);
      for (let round = -1; round < rounds; round++) {
        const names = round % 2 === 0 ? ['edge', 'nginx'] : ['nginx', 'edge'];
        for (const name of names) {
          const server = subjects.get(name)!;
          const { rps, cpuMs } = shape.count ? await oneByOne(server, shape) : await load(server, script(shape));
          // Round -1 warms connections and the rule set.
          if (round < 0) continue;
          const key = `${name}, ${shape.name}`;
          const measured = all.get(key) ?? { rps: [], cpuMs: [] };
          all.set(key, measured);
          measured.rps.push(rps);
          measured.cpuMs.push(cpuMs);
          log(`round ${round + 1} ${key}: ${round2(rps)} requests/s`);
        }
      }
    }

    const theEdge = subjects.get('edge')!;
    const distinct = script(SHAPES[0]!);
    const paced = new Map<string, Paced>();
    for (let round = 0; round < rounds; round++) {
      for (const name of round % 2 === 0 ? ['edge', 'nginx'] : ['nginx', 'edge']) {
        const server = subjects.get(name)!;
        const rate = SHARE * median(all.get(`${name}, ${SHAPES[0]!.name}`)!.rps);
        const one = await load(server, distinct + pace(rate), seconds * 2, CROWD);
        const measured = paced.get(name) ?? { share: [], p50Ms: [], p99Ms: [] };
        paced.set(name, measured);
        measured.share.push((one.rps / rate) * SHARE);
        measured.p50Ms.push(one.p50Ms);
        measured.p99Ms.push(one.p99Ms);
      }
    }
    log(`${rounds} rounds at ${SHARE * 100} % of what each serves`);
    const same = distinct.replace('tostring(at)', '"1"');
    const repeats: Repeated = { ratio: [], cpuMs: [] };
    for (let round = 0; round < rounds; round++) {
      const one = await load(theEdge, same);
      repeats.ratio.push(one.rps / (await load(theEdge, distinct)).rps);
      repeats.cpuMs.push(one.cpuMs);
    }

    const plainAlone = await edge('plain-alone', 2, 0);
    const plainBeside = await edge('plain-beside', 2, 1);
    // The first site is inspected, the second not.
    const second = distinct.replace(HOST, siteHost(1));
    await load(plainBeside, distinct, 1);
    const without: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const [one, other] = round % 2 === 0 ? [plainBeside, plainAlone] : [plainAlone, plainBeside];
      const figures = new Map([[one, await load(one, second)]]);
      figures.set(other, await load(other, second));
      without.push(figures.get(plainBeside)!.cpuMs / figures.get(plainAlone)!.cpuMs);
    }

    const memory: Record<string, number> = {};
    const largest = script(SHAPES.at(-1)!);
    for (const sites of quick ? [1, 100] : [1, 100, 1000]) {
      const none = await edge(`memory-none-${sites}`, sites, 0);
      const with_ = await edge(`memory-${sites}`, sites, sites);
      const every = everySite(distinct, sites);
      for (const server of [none, with_]) await load(server, every, 2);
      memory[`${sites} sites`] = round2(residentMiB(with_.pid) - residentMiB(none.pid));
      if (sites === 1) {
        // Most of so many wait longer for their turn than they may, and are refused.
        for (const server of [none, with_]) await crowd(server, largest, quick ? 4 : 10, CROWD);
        memory[`${CROWD} bodies of 128 KB at once, at most`] = round2(peakMiB(with_.pid) - peakMiB(none.pid));
      }
      for (const server of [none, with_]) await server.stop();
      log(`memory with ${sites} sites`);
    }
    const measured = result(all, paced, repeats, medianInterval(without), memory);
    return refused === 0
      ? measured
      : { ...measured, notes: [`${refused} requests were refused for want of processor time: the machine was busy`] };
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Start = (...options: Parameters<typeof startServer>) => Promise<Server>;

/** nginx with the module of Debian and the rule set of the edge: what it needs of the engine's own setup, and no log. */
async function startNginx(folder: string, start: Start, originPort: number): Promise<Server> {
  // Names of files with @ are none to it.
  const rules = path.join(folder, 'rules');
  cpSync(path.join(rulesFolder(), 'rules', '@owasp_crs'), rules, { recursive: true });
  const evaluation = path.join(rules, 'REQUEST-949-BLOCKING-EVALUATION.conf');
  chmodSync(evaluation, 0o644);
  // Its reader wants an action of each rule.
  const withoutAction = 'SecRule TX:EARLY_BLOCKING "@eq 1"';
  writeFileSync(evaluation, readFileSync(evaluation, 'utf8').replaceAll(withoutAction, `${withoutAction} "t:none"`));
  const files = readdirSync(rules).filter(
    (name) => /^REQUEST-.*\.conf$/.test(name) && !name.startsWith('REQUEST-905-'),
  );
  const setup = path.join(folder, 'modsecurity.conf');
  writeFileSync(
    setup,
    `SecRuleEngine On
SecRequestBodyAccess On
SecRequestBodyLimit 134217728
SecRequestBodyNoFilesLimit 134217728
SecResponseBodyAccess Off
SecAuditEngine Off
SecArgumentsLimit 1000000
SecPcreMatchLimit 100000
SecPcreMatchLimitRecursion 100000
SecDefaultAction "phase:1,nolog,noauditlog,pass"
SecDefaultAction "phase:2,nolog,noauditlog,pass"
SecRule REQUEST_HEADERS:Content-Type "^application/json" "id:200001,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON"
SecAction "id:900990,phase:1,pass,t:none,nolog,setvar:tx.crs_setup_version=4250"
${files.map((name) => `Include ${path.join(rules, name)}`).join('\n')}
`,
  );
  const port = await freePort();
  const http = `  upstream origin { server 127.0.0.1:${originPort}; keepalive 16; keepalive_requests 10000000; }
  server { listen 127.0.0.1:${port}; client_max_body_size 0; client_body_buffer_size 1m; modsecurity on; modsecurity_rules_file ${setup};
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; } }`;
  const command = nginxCommand(path.join(folder, 'nginx'), http, { modules: [MODULE] });
  return start('nginx', PROXY_CPU, command, port, () => answersBrowser(port));
}

function rulesFolder(): string {
  const module = 'github.com/corazawaf/coraza-coreruleset/v4';
  return execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', module], { cwd: caddySources, encoding: 'utf8' }).trim();
}

async function statusOf(port: number, target: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}${target}`, {
    headers: { 'User-Agent': HEADERS['User-Agent'] },
  });
  await response.arrayBuffer();
  return response.status;
}

/** A host that is an address is an offence to the rules, but not enough of one. */
const answersBrowser = async (port: number) => (await statusOf(port, '/')) === 200;

/** A request of a shape that must pass: what follows would measure refusals otherwise. */
async function mustPass({ name, port }: Server, { name: shape, type, text }: Shape, at: number): Promise<void> {
  const filled = text.replaceAll('@', String(at));
  const body = type ? filled : '';
  const request = http.request({
    host: '127.0.0.1',
    port,
    method: type ? 'POST' : 'GET',
    path: type ? '/save' : filled,
    headers: { ...HEADERS, ...(type && { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) }) },
  });
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`${name} answers ${response.statusCode} to ${shape}`);
}

/** Numbers that no request had before. */
let nextNumber = 1_000_000;

async function oneByOne(server: Server, shape: Shape) {
  const before = cpuSeconds(server.pid);
  const begun = performance.now();
  for (let at = 0; at < shape.count!; at++) await mustPass(server, shape, nextNumber++);
  return {
    rps: (shape.count! * 1000) / (performance.now() - begun),
    cpuMs: ((cpuSeconds(server.pid) - before) * 1000) / shape.count!,
  };
}

async function mustBlock(name: string, port: number): Promise<void> {
  const lua = script({ name: '', text: '/?q=1%27%20union%20select%20password%20from%20users--%20@', aim: 0 });
  const { requests, unexpected } = await wrk(os.tmpdir(), {
    url: `http://127.0.0.1:${port}/`,
    seconds: 1,
    connections: 1,
    script: lua,
  });
  if (requests === 0 || unexpected < requests)
    throw new Error(`${name} lets ${requests - unexpected} of ${requests} attacks through`);
}

function result(
  all: Map<string, Measured>,
  paced: Map<string, Paced>,
  repeated: Repeated,
  without: ReturnType<typeof medianInterval>,
  memory: Record<string, number>,
): BenchResult {
  const figures: Record<string, unknown> = {};
  const aims: BenchResult['aims'] = [];
  for (const { name, aim } of SHAPES) {
    const [edge, nginx] = [all.get(`edge, ${name}`)!, all.get(`nginx, ${name}`)!];
    const times = medianInterval(edge.rps.map((value, round) => value / nginx.rps[round]!));
    figures[name] = {
      edge: { rps: round2(median(edge.rps)), cpuMs: round2(median(edge.cpuMs)) },
      nginx: { rps: round2(median(nginx.rps)), cpuMs: round2(median(nginx.cpuMs)) },
      edgeToNginx: [times.low, times.median, times.high].map(round2),
    };
    aims.push({ aim: `${name}: ≥ ${aim} × nginx, requests/s (median of rounds)`, reached: times.median >= aim });
  }
  figures[`${SHAPES[0]!.name}, at ${SHARE * 100} % of capacity`] = Object.fromEntries(
    [...paced].map(([name, { share, p50Ms, p99Ms }]) => [
      name,
      { share: round2(median(share)), p50Ms: round2(median(p50Ms)), p99Ms: round2(median(p99Ms)) },
    ]),
  );
  figures['repeated GET'] = {
    edge: { cpuMs: round2(median(repeated.cpuMs)) },
    timesDistinct: round2(median(repeated.ratio)),
  };
  figures.siteWithoutWafBesideOneWithIt = [without.low, without.median, without.high].map(round2);
  figures.moreMiBThanWithoutWaf = memory;
  aims.push(
    {
      aim: `p99 at ${SHARE * 100} % of capacity is at most nginx's at ${SHARE * 100} % of its own`,
      reached: median(paced.get('edge')!.p99Ms) <= median(paced.get('nginx')!.p99Ms),
    },
    { aim: 'a repeated GET ≥ 10 × one that is inspected', reached: median(repeated.ratio) >= 10 },
    {
      aim: 'a site without WAF costs what it costs where nobody uses it (1 is in the interval)',
      reached: without.low <= 1,
    },
    { aim: 'at most 40 MiB more, whatever the sites and bodies', reached: Math.max(...Object.values(memory)) <= 40 },
  );
  return {
    figures,
    aims,
    programs: {
      nginx: ['nginx', '-v'],
      libmodsecurity: ['dpkg-query', '-W', '-f', '$' + '{Version}', 'libmodsecurity3'],
      module: ['dpkg-query', '-W', '-f', '$' + '{Version}', PACKAGE],
      wrk: ['wrk', '-v'],
    },
  };
}
