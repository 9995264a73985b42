// GETs of one inspected site while another one is flooded with bodies that are dear to inspect. The data plane runs alone,
// with the other core for origin and clients. All requests differ, so that no verdict is remembered.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WafMode } from '../proto/gen/svc/config/v1/waf_pb.js';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { percentile, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'GETs of one inspected site while another is flooded with the dearest bodies';
export const needs = ['nginx', 'wrk'];

const SERVER_CPU = '0';
const LOAD_CPU = '1';
const FLOODED = siteHost(0);
const VISITED = siteHost(1);
const FLOOD_CONNECTIONS = 16;
const BODY_BYTES = 1 << 20;
/** Time between two GETs. */
const EVERY_MS = 20;
const MOST_P99_MS = 100;
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';
/** Words of the dearest bodies of `waf-hostile`. */
const WORDS = ['select ', 'union ', 'from ', 'where ', "' ", '(', ') ', '-- ', 'having ', 'sleep', '@@', '||'];

interface Visits {
  millis: number[];
  refused: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const seconds = quick ? 4 : 20;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-waf-fairness-'));
  const started: Server[] = [];
  try {
    const originPort = await freePort();
    const origin = `  server { listen 127.0.0.1:${originPort}; client_max_body_size 0; location / { return 200 "ok"; } }`;
    started.push(
      await startServer('origin', LOAD_CPU, nginxCommand(path.join(folder, 'origin'), origin), originPort, () =>
        answers(originPort, VISITED),
      ),
    );
    const state = path.join(folder, 'edge');
    const port = await freePort();
    // So high a threshold that the bodies are inspected to their ends.
    const strict = { mode: WafMode.BLOCK, paranoiaLevel: 1, anomalyThreshold: 1000, requestBodyLimit: 8 * BODY_BYTES };
    writeEdgeState({
      folder: state,
      sites: 2,
      origin: { address: '127.0.0.1', port: originPort },
      waf: [strict, strict],
    });
    started.push(await startServer('edge', SERVER_CPU, edgeCommand(state, port), port, () => answers(port, VISITED)));
    // The first inspection reads the rules.
    await visit(port, 1);
    const alone = await visit(port, quick ? 2 : 5);
    let flooding = true;
    const flood = wrk(folder, {
      url: `http://127.0.0.1:${port}/`,
      seconds: seconds + 2,
      connections: FLOOD_CONNECTIONS,
      cpus: LOAD_CPU,
      timeoutSeconds: 60,
      script: floodScript(),
    }).finally(() => {
      flooding = false;
    });
    await sleep(1000);
    const beside = await visit(port, seconds);
    if (!flooding) throw new Error('the flood ended before the visit');
    const { requests, unexpected } = await flood;
    const figures = {
      alone: summary(alone),
      whileFlooded: summary(beside),
      flood: { bodies: requests, refused: unexpected },
    };
    log(JSON.stringify(figures));
    return {
      figures,
      aims: [
        { aim: 'no GET of the other site is refused', reached: beside.refused === 0 },
        {
          aim: `GETs of the other site take at most ${MOST_P99_MS} ms at p99`,
          reached: figures.whileFlooded.p99Ms <= MOST_P99_MS,
        },
      ],
      programs: { nginx: ['nginx', '-v'], wrk: ['wrk', '-v'] },
    };
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const summary = ({ millis, refused }: Visits) => ({
  gets: millis.length,
  refused,
  p50Ms: round2(percentile(millis, 50)),
  p99Ms: round2(percentile(millis, 99)),
});

/** Lua of forms with short fields of hostile words, each with another number in it. */
function floodScript(): string {
  let body = '';
  for (let at = 0; body.length < BODY_BYTES; at++)
    body += `&${at}=${encodeURIComponent(WORDS[(at * 7) % WORDS.length]!).replaceAll('%20', '+')}`;
  return `wrk.headers["Host"] = "${FLOODED}"
wrk.headers["User-Agent"] = "${BROWSER}"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
local rest = [==[${body}]==]
local at = 0
request = function()
  at = at + 1
  return wrk.format("POST", "/save", nil, "n=" .. at .. rest)
end
`;
}

let nextNumber = 0;

/** One GET after the other is sent at even times, whatever became of those before. */
async function visit(port: number, seconds: number): Promise<Visits> {
  const agent = new http.Agent({ keepAlive: true });
  const visits: Visits = { millis: [], refused: 0 };
  const one = async () => {
    const begun = performance.now();
    const request = http.request({
      host: '127.0.0.1',
      port,
      agent,
      path: `/list?page=${nextNumber++}&sort=name&q=quick+brown+foxes`,
      headers: { Host: VISITED, 'User-Agent': BROWSER, Accept: 'text/html' },
    });
    request.end();
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    response.resume();
    await once(response, 'end');
    if (response.statusCode === 200) visits.millis.push(performance.now() - begun);
    else visits.refused++;
  };
  const all: Promise<void>[] = [];
  for (const end = performance.now() + seconds * 1000; performance.now() < end; await sleep(EVERY_MS)) all.push(one());
  await Promise.all(all);
  agent.destroy();
  return visits;
}
