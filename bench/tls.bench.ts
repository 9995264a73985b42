// Handshakes and requests of HTTP/2: our edge beside stock Caddy and nginx, and beside Go's own server, which answers by
// itself. Each has core 0 for itself while it is measured; origin (nginx) and clients have core 1. What is compared is the
// processor time of the server: clients of handshakes may be slower than it.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { threeOf } from './lib/beside.ts';
import { httpsWith, writePack, writePem } from './lib/certificate-files.ts';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { threadSeconds } from './lib/machine.ts';
import { type CertificateFiles, startPlainCaddy } from './lib/plain-caddy.ts';
import { answers, answersTls, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { medianInterval, round2 } from './lib/stats.ts';
import { type Certificate, type Curve, TlsLoad } from './lib/tls-load.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'handshakes and HTTP/2 requests beside Caddy, nginx and Go’s own server, one core each';
export const needs = ['nginx', 'openssl'];

const SERVER_CPU = '0';
const LOAD_CPU = '1';
const CONNECTIONS = 16;
const STREAMS = 4;
const UNEXPECTED_SHARE = 0.001;
/** Sites of the two kinds of keys. */
const HOSTS = { ECDSA: siteHost(0), RSA: siteHost(1) } as const;
type KeyKind = keyof typeof HOSTS;
const CURVES: readonly Curve[] = ['X25519', 'X25519MLKEM768'];
const MICROS = 1e6;

/** Processor time of the server in microseconds, by what was done, by server, round by round. */
type Measured = Map<string, Map<string, number[]>>;

interface Subject {
  server: Server;
  /** Kinds of keys that it has. */
  keys: readonly KeyKind[];
  curves: readonly Curve[];
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 12;
  const count = quick ? 100 : 1000;
  const seconds = quick ? 0.5 : 3;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-tls-'));
  const started: Server[] = [];
  try {
    const load = new TlsLoad(LOAD_CPU);
    const subjects = await startSubjects(folder, load, started, log);
    const measured: Measured = new Map();
    const wall = new Map<string, number[]>();
    await warmUp(load, subjects);
    for (let round = 0; round < rounds; round++) {
      const order = [...subjects].map((_, index, all) => all[(index + round) % all.length]!);
      for (const { what, options } of handshakeKinds()) {
        for (const [name, subject] of order) {
          if (!subject.keys.includes(options.key) || !subject.curves.includes(options.curve)) continue;
          const { key, curve, resumed } = options;
          const target = { port: subject.server.port, host: HOSTS[key], curve, resumed };
          const spent = await spentBy(subject.server, async () => {
            return (await load.handshakes({ ...target, count })).micros.length;
          });
          push(measured, what, name, spent.micros);
        }
      }
      for (const [name, { server }] of order) {
        let rps = 0;
        const spent = await spentBy(server, async () => {
          const options = { port: server.port, host: HOSTS.ECDSA, connections: CONNECTIONS, streams: STREAMS };
          const done = await load.requests({ ...options, seconds });
          if (done.unexpected > done.requests * UNEXPECTED_SHARE)
            throw new Error(`${name}: ${done.unexpected} of ${done.requests} answers were not expected`);
          rps = done.requests / done.seconds;
          return done.requests;
        });
        push(measured, REQUEST, name, spent.micros);
        wall.set(name, [...(wall.get(name) ?? []), rps]);
      }
      log(`round ${round + 1} of ${rounds}`);
    }
    return result(measured, wall);
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const REQUEST = 'HTTP/2 request';
const WARM_HANDSHAKES = 200;
const WARM_SECONDS = 0.5;

/** Has each server do all of it once before anything is measured: tables, pools and heaps have their sizes then. */
async function warmUp(load: TlsLoad, subjects: ReadonlyMap<string, Subject>): Promise<void> {
  for (const { server, keys, curves } of subjects.values()) {
    const { port } = server;
    for (const { options } of handshakeKinds()) {
      const { key, curve, resumed } = options;
      if (keys.includes(key) && curves.includes(curve))
        await load.handshakes({ port, host: HOSTS[key], curve, resumed, count: WARM_HANDSHAKES });
    }
    const options = { port, host: HOSTS.ECDSA, connections: CONNECTIONS, streams: STREAMS };
    await load.requests({ ...options, seconds: WARM_SECONDS });
  }
}

function handshakeKinds() {
  const full = (['ECDSA', 'RSA'] as const).flatMap((key) =>
    CURVES.map((curve) => ({ what: `full ${key} ${curve}`, options: { key, curve, resumed: false } })),
  );
  const resumed = CURVES.map((curve) => ({
    what: `resumed ${curve}`,
    options: { key: 'ECDSA' as const, curve, resumed: true },
  }));
  return [...full, ...resumed];
}

/** Processor time of a server for each of what was done. */
async function spentBy(server: Server, work: () => Promise<number>): Promise<{ micros: number }> {
  const before = threadSeconds(server.pid);
  const count = await work();
  return { micros: ((threadSeconds(server.pid) - before) / count) * MICROS };
}

async function startSubjects(
  folder: string,
  load: TlsLoad,
  started: Server[],
  log: (line: string) => void,
): Promise<Map<string, Subject>> {
  const start = async (...options: Parameters<typeof startServer>) => {
    const server = await startServer(...options);
    started.push(server);
    return server;
  };
  const certificates: Record<KeyKind, Certificate> = {
    ECDSA: await only(load.certificates({ host: HOSTS.ECDSA, key: 'ecdsa' })),
    RSA: await only(load.certificates({ host: HOSTS.RSA, key: 'rsa' })),
  };
  const files = {
    ECDSA: writePem(folder, 'ecdsa', certificates.ECDSA),
    RSA: writePem(folder, 'rsa', certificates.RSA),
  };
  const keys = ['ECDSA', 'RSA'] as const;
  const originPort = await freePort();
  const origin = `  server { listen 127.0.0.1:${originPort} backlog=4096; location / { return 200 "${'x'.repeat(1024)}"; } }`;
  await start('origin', LOAD_CPU, nginxCommand(path.join(folder, 'origin'), origin), originPort, () =>
    answers(originPort, 'origin'),
  );
  const subjects = new Map<string, Subject>();

  const state = path.join(folder, 'edge');
  mkdirSync(state, { mode: 0o700 });
  const pack = await writePack(state, [certificates.ECDSA, certificates.RSA]);
  const https = (index: number) => httpsWith(pack[index]!);
  writeEdgeState({ folder: state, sites: 2, origin: { address: '127.0.0.1', port: originPort }, https });
  const [plainPort, edgePort] = [await freePort(), await freePort()];
  const edge = await start('edge', SERVER_CPU, edgeCommand(state, plainPort, undefined, edgePort), edgePort, () =>
    answersTls(edgePort, HOSTS.RSA),
  );
  subjects.set('edge', { server: edge, keys, curves: CURVES });

  log('building the plain Caddy to compare with');
  const proxy = { handler: 'reverse_proxy', upstreams: [{ dial: `127.0.0.1:${originPort}` }] };
  const ready = (port: number) => answersTls(port, HOSTS.RSA);
  const caddy = await startPlainCaddy(folder, SERVER_CPU, proxy, ready, Object.values(files));
  started.push(caddy);
  subjects.set('caddy', { server: caddy, keys, curves: CURVES });

  const nginxPort = await freePort();
  const command = nginxCommand(path.join(folder, 'nginx'), nginxServers(nginxPort, originPort, files));
  const nginx = await start('nginx', SERVER_CPU, command, nginxPort, () => answersTls(nginxPort, HOSTS.RSA));
  const curves = await curvesOf(load, nginxPort);
  subjects.set('nginx', { server: nginx, keys, curves });

  const goPort = await freePort();
  const { certificate, key } = files.ECDSA;
  const serve = ['serve', '--address', `127.0.0.1:${goPort}`, '--certificate', certificate, '--key', key];
  const bare = await start('go', SERVER_CPU, [load.program, ...serve], goPort, () => answersTls(goPort, HOSTS.ECDSA));
  subjects.set('go', { server: bare, keys: ['ECDSA'], curves: CURVES });
  return subjects;
}

function nginxServers(port: number, originPort: number, files: Record<KeyKind, CertificateFiles>): string {
  const servers = (['ECDSA', 'RSA'] as const).map(
    (kind) => `  server { listen 127.0.0.1:${port} ssl http2; server_name ${HOSTS[kind]};
    ssl_certificate ${files[kind].certificate}; ssl_certificate_key ${files[kind].key};
    location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Real-IP $remote_addr; } }`,
  );
  return `  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tls:10m;
  upstream origin { server 127.0.0.1:${originPort}; keepalive 128; keepalive_requests 10000000; }
${servers.join('\n')}`;
}

/** Key exchanges that a server has: OpenSSL learnt MLKEM with 3.5. */
async function curvesOf(load: TlsLoad, port: number): Promise<Curve[]> {
  const found: Curve[] = [];
  for (const curve of CURVES) {
    const has = await load.handshakes({ port, host: HOSTS.ECDSA, curve, count: 1 }).then(
      () => true,
      () => false,
    );
    if (has) found.push(curve);
  }
  return found;
}

async function only<T>(values: AsyncIterable<T>): Promise<T> {
  const [value] = await Array.fromAsync(values);
  if (value === undefined) throw new Error('no certificate was made');
  return value;
}

function push(measured: Measured, what: string, name: string, micros: number): void {
  const ofNames = measured.get(what) ?? new Map<string, number[]>();
  measured.set(what, ofNames);
  ofNames.set(name, [...(ofNames.get(name) ?? []), micros]);
}

function result(measured: Measured, wall: Map<string, number[]>): BenchResult {
  const figures: Record<string, unknown> = {};
  for (const [what, ofNames] of measured) {
    figures[what] = Object.fromEntries(
      [...ofNames].map(([name, micros]) => {
        const { median, low, high } = medianInterval(micros);
        return [name, { cpuMicros: round2(median), interval: [round2(low), round2(high)] }];
      }),
    );
  }
  // How many times as much the edge gets out of the same processor time, round by round.
  const times = (what: string, other: string) => {
    const edge = measured.get(what)!.get('edge')!;
    return medianInterval(edge.map((micros, round) => measured.get(what)!.get(other)![round]! / micros));
  };
  const toOthers = (what: string) =>
    Object.fromEntries(
      [...measured.get(what)!.keys()]
        .filter((name) => name !== 'edge')
        .map((name) => [name, threeOf(times(what, name))]),
    );
  figures.edgeTo = Object.fromEntries([...measured.keys()].map((what) => [what, toOthers(what)]));
  figures.requestsPerSecond = Object.fromEntries(
    [...wall].map(([name, rps]) => [name, Math.round(medianInterval(rps).median)]),
  );
  const kinds = handshakeKinds().map(({ what }) => what);
  return {
    figures,
    aims: [
      ...kinds.map((what) => ({
        aim: `${what}: handshakes ≥ 1.0 × Caddy, processor time (median)`,
        reached: times(what, 'caddy').median >= 1,
      })),
      { aim: 'HTTP/2 requests ≥ 2 × Caddy, processor time (median)', reached: times(REQUEST, 'caddy').median >= 2 },
      { aim: 'HTTP/2 requests ≥ 0.3 × nginx, processor time (median)', reached: times(REQUEST, 'nginx').median >= 0.3 },
    ],
    notes: measured.get('full ECDSA X25519MLKEM768')!.has('nginx')
      ? []
      : ['the OpenSSL of this nginx has no X25519MLKEM768'],
    programs: { nginx: ['nginx', '-v'], openssl: ['openssl', 'version'], go: ['go', 'version'] },
  };
}
