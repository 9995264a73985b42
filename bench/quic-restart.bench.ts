// A client of HTTP/3 that keeps asking while the data plane is started anew: told to end, which says GOAWAY, and killed, after
// which the next process answers its packets with a stateless reset. What counts is the time from the moment the next process
// serves TCP to the client's first answer, on a connection that it had to make anew.
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ProtocolClient } from '../bin/lib/protocol-client.ts';
import { httpsWith, writePack, writePem } from './lib/certificate-files.ts';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { answers, answersTls, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { summary } from './lib/stats.ts';
import { TlsLoad } from './lib/tls-load.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'clients of HTTP/3 connect anew when the data plane is started anew';
export const needs = ['nginx'];

const HOST = siteHost(0);
const ASK_EVERY_MS = 20;
const ANSWERED_TIMEOUT_MS = 60_000;
const WAYS = { ended: 'SIGTERM', killed: 'SIGKILL' } as const;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 15;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-quic-restart-'));
  const started: { stop(): Promise<void> }[] = [];
  try {
    const originPort = await freePort();
    const site = `  server { listen 127.0.0.1:${originPort}; location / { return 200 "ok"; } }`;
    const origin = nginxCommand(path.join(folder, 'origin'), site);
    started.push(await startServer('origin', '1', origin, originPort, () => answers(originPort, 'origin')));
    const [certificate] = await Array.fromAsync(new TlsLoad('1').certificates({ host: HOST }));
    if (!certificate) throw new Error('no certificate was made');
    const state = path.join(folder, 'edge');
    mkdirSync(state, { mode: 0o700 });
    writeFileSync(path.join(state, 'quic.key'), randomBytes(32), { mode: 0o600 });
    const [fingerprint] = await writePack(state, [certificate]);
    const https = () => ({ ...httpsWith(fingerprint!), http3: true });
    writeEdgeState({ folder: state, sites: 1, origin: { address: '127.0.0.1', port: originPort }, https });
    const [plainPort, port] = [await freePort(), await freePort()];
    const serve = () =>
      startServer('edge', '0-1', edgeCommand(state, plainPort, undefined, port), port, () => answersTls(port, HOST));
    const [, authority] = certificate.chain;
    const { certificate: file } = writePem(folder, 'authority', { ...certificate, chain: [authority!] });
    const figures: Record<string, unknown> = {};
    const aims: BenchResult['aims'] = [];
    let edge: Server = await serve();
    started.push({ stop: () => edge.stop() });
    const client = await ProtocolClient.start(3, port, readFileSync(file, 'utf8'));
    started.push({ stop: () => client.close() });
    for (const [way, signal] of Object.entries(WAYS)) {
      const sample: number[] = [];
      for (let round = 0; round < rounds; round++) {
        await answeredAfter(client, performance.now());
        process.kill(edge.pid, signal);
        await edge.stop();
        const again = serve().then((server) => {
          edge = server;
          return performance.now();
        });
        const first = answeredAfter(client, performance.now());
        const serving = await again;
        sample.push(Math.max((await first) - serving, 0));
        log(`${way}, round ${round + 1} of ${rounds}: ${Math.round(sample.at(-1)!)} ms`);
      }
      figures[way] = summary(sample);
      aims.push({ aim: `${way}: an answer within 1 s in each round`, reached: Math.max(...sample) <= 1000 });
    }
    return { figures, aims, programs: { go: ['go', 'version'] } };
  } finally {
    for (const each of started.reverse()) await each.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** When the first of requests that begin from a moment on is answered, each beside those that are still waiting. */
async function answeredAfter(client: ProtocolClient, since: number): Promise<number> {
  let answered: number | undefined;
  while (answered === undefined) {
    if (performance.now() - since > ANSWERED_TIMEOUT_MS) throw new Error('no request is answered any more');
    client.ask(HOST).then(
      ({ status }) => {
        if (status === 200) answered ??= performance.now();
      },
      () => undefined,
    );
    await delay(ASK_EVERY_MS);
  }
  return answered;
}
