// A node with 100,000 sites that share one certificate beside one where each has its own: start, memory, lookup by name,
// handshakes with certificates that nobody asked for, and how soon a changed one is served.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { create } from '@bufbuild/protobuf';
import { EdgeClient } from '../agents/edge/caddy/edge-client.ts';
import { CertificatePack } from '../agents/edge/certificates/certificate-pack.ts';
import { createLog } from '../agents/kit/log.ts';
import { type ConfigPosition, ConfigPositionSchema } from '../proto/gen/svc/node/v1/config_pb.js';
import { clockMs } from './fleet/fleet.ts';
import { threeOf } from './lib/beside.ts';
import { httpsWith, materialOf, packFile, writePack } from './lib/certificate-files.ts';
import { edgeCommand, edgeSocket } from './lib/edge.ts';
import { firstShown } from './lib/edge-probe.ts';
import { httpsEntry, siteHost, writeEdgeState } from './lib/edge-state.ts';
import { residentMiB, threadSeconds } from './lib/machine.ts';
import { answers, answersTls, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { median, medianInterval, percentile, round2, summary } from './lib/stats.ts';
import { type Certificate, TlsLoad } from './lib/tls-load.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = '100,000 certificates on one node beside one';
export const needs = ['nginx'];

const AIM_START = 1.3;
const AIM_LOOKUP_NS = 200;
const AIM_BYTES = 256;
const AIM_COLD_MS = 5;
/** siteHost of any index. */
const NUMBERED = siteHost(0).replace('0', '%d');
const WILDCARD = siteHost(0).replace(/^[^.]*/, '*');
const CPUS = '0-1';

interface Node {
  folder: string;
  position: ConfigPosition;
}

interface Starts {
  ms: number[];
  cpuMs: number[];
  residentMiB: number[];
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const sites = quick ? 5_000 : 100_000;
  const rounds = quick ? 2 : 11;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-cert-scale-'));
  const load = new TlsLoad(CPUS);
  const originPort = await freePort();
  const answer = `  server { listen 127.0.0.1:${originPort}; location / { return 200 "ok"; } }`;
  const origin = await startServer('origin', CPUS, nginxCommand(path.join(folder, 'origin'), answer), originPort, () =>
    answers(originPort, 'origin'),
  );
  try {
    const one = await prepare(path.join(folder, 'one'), sites, originPort, load.certificates({ host: WILDCARD }));
    const own = load.certificates({ host: NUMBERED, count: sites });
    const many = await prepare(path.join(folder, 'many'), sites, originPort, own);
    log(`${sites} certificates made`);
    const starts = { one: noStarts(), many: noStarts() };
    for (let round = 0; round < rounds; round++) {
      const order = [
        [one, starts.one],
        [many, starts.many],
      ] as const;
      for (const [node, taken] of round % 2 === 0 ? order : order.toReversed()) {
        const before = performance.now();
        const { server } = await startNode(node, sites);
        taken.ms.push(performance.now() - before);
        taken.cpuMs.push(threadSeconds(server.pid) * 1000);
        taken.residentMiB.push(residentMiB(server.pid));
        await server.stop();
      }
      log(`start ${round + 1} of ${rounds}`);
    }
    const { server, port } = await startNode(many, sites);
    try {
      const visits = { port, host: NUMBERED, numbers: sites, count: quick ? 200 : 5000 };
      const cold = (await load.handshakes({ ...visits, seed: 1 })).micros;
      const warm = (await load.handshakes({ ...visits, seed: 1 })).micros;
      const changes = await Array.fromAsync(load.certificates({ host: NUMBERED, count: quick ? 10 : 200 }));
      const changed = await change(many, port, changes);
      log(`${changes.length} certificates changed`);
      return result(starts, { cold, warm }, changed, goFigures(quick ? 2 : 9));
    } finally {
      await server.stop();
    }
  } finally {
    await origin.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const noStarts = (): Starts => ({ ms: [], cpuMs: [], residentMiB: [] });

/** The state of a node whose sites go round these certificates. */
async function prepare(
  folder: string,
  sites: number,
  originPort: number,
  certificates: AsyncIterable<Certificate>,
): Promise<Node> {
  mkdirSync(folder, { mode: 0o700 });
  const pack = await writePack(folder, certificates);
  const https = (index: number) => httpsWith(pack[index % pack.length]!);
  const position = writeEdgeState({ folder, sites, origin: { address: '127.0.0.1', port: originPort }, https });
  return { folder, position };
}

async function startNode({ folder }: Node, sites: number): Promise<{ server: Server; port: number }> {
  const [plain, port] = [await freePort(), await freePort()];
  const command = edgeCommand(folder, plain, undefined, port);
  return { server: await startServer('edge', CPUS, command, port, () => answersTls(port, siteHost(sites - 1))), port };
}

/** Milliseconds from an entry that names another certificate until that is shown, the way from the console left out. */
async function change(node: Node, port: number, certificates: readonly Certificate[]): Promise<number[]> {
  const log = createLog('error');
  const pack = CertificatePack.open({ path: packFile(node.folder), log });
  const client = new EdgeClient(edgeSocket(node.folder));
  const times: number[] = [];
  let base = node.position;
  try {
    for (const [index, certificate] of certificates.entries()) {
      const { fingerprint } = certificate;
      const shown = firstShown(`127.0.0.1:${port}`, siteHost(index), fingerprint);
      const before = clockMs();
      const target = create(ConfigPositionSchema, { ...base, revision: base.revision + 1n });
      await client.applyConfig({ base, target, upserts: [httpsEntry(index, httpsWith(fingerprint))] });
      await pack.put([materialOf(certificate)]);
      const { failed } = await client.readCertificates();
      if (failed.length > 0) throw new Error(`${siteHost(index)}: ${failed[0]!.reason}`);
      times.push((await shown) - before);
      base = target;
    }
  } finally {
    client.close();
    await pack.close();
  }
  return times;
}

interface GoFigures {
  lookupNs: number[];
  bytes: number[];
}

/** Lookups and memory inside the process. */
function goFigures(rounds: number): GoFigures {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-cert-scale-go-'));
  const cwd = path.join(import.meta.dirname, '../agents/caddy/features/handshake');
  let output = '';
  try {
    const program = path.join(folder, 'handshake.test');
    execFileSync('go', ['test', '-c', '-o', program], { cwd, timeout: 600_000 });
    for (const [name, times] of [
      ['SiteOfAName', '2000000x'],
      ['UnusedCertificates', '1x'],
    ] as const) {
      const flags = ['-test.run', '^$', '-test.bench', name, '-test.benchtime', times, '-test.count', String(rounds)];
      output += execFileSync(program, flags, { cwd, encoding: 'utf8', timeout: 600_000 });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const figuresOf = (name: string, unit: string) => {
    const lines = [...output.matchAll(new RegExp(`^Benchmark${name}(?:-\\d+)?\\s+\\d+\\s.*?([\\d.]+) ${unit}`, 'gm'))];
    if (lines.length !== rounds) throw new Error(`${lines.length} figures of ${name} in:\n${output}`);
    return lines.map((match) => Number(match[1]));
  };
  return {
    lookupNs: figuresOf('SiteOfAName/100000_sites', 'cpu-ns/op'),
    bytes: figuresOf('UnusedCertificates', 'B/certificate'),
  };
}

function result(
  starts: Record<'one' | 'many', Starts>,
  { cold, warm }: Record<'cold' | 'warm', number[]>,
  changed: readonly number[],
  go: GoFigures,
): BenchResult {
  const ratio = (figure: 'ms' | 'cpuMs') =>
    medianInterval(starts.many[figure].map((each, round) => each / starts.one[figure][round]!));
  const start = ratio('ms');
  const lookup = medianInterval(go.lookupNs);
  const bytes = median(go.bytes);
  const startFigures = ({ ms, cpuMs, residentMiB: resident }: Starts) => ({
    ms: Math.round(median(ms)),
    cpuMs: Math.round(median(cpuMs)),
    residentMiB: round2(median(resident)),
  });
  const handshake = (micros: readonly number[]) => summary(micros.map((each) => each / 1000));
  const coldP99 = percentile(cold, 99) / 1000;
  return {
    figures: {
      start: { one: startFigures(starts.one), many: startFigures(starts.many) },
      manyToOne: threeOf(start),
      manyToOneTime: threeOf(ratio('cpuMs')),
      lookupNs: [round2(lookup.low), round2(lookup.median), round2(lookup.high)],
      bytesOfAnUnusedCertificate: round2(bytes),
      handshake: { cold: handshake(cold), warm: handshake(warm) },
      changed: summary(changed),
    },
    aims: [
      { aim: `start ≤ ${AIM_START} × that with one certificate (median)`, reached: start.median <= AIM_START },
      {
        aim: `finding a site by its name ≤ ${AIM_LOOKUP_NS} ns of processor time (upper end of the interval)`,
        reached: lookup.high <= AIM_LOOKUP_NS,
      },
      { aim: `a certificate that nobody asks for ≤ ${AIM_BYTES} B`, reached: bytes <= AIM_BYTES },
      { aim: `cold handshake p99 ≤ ${AIM_COLD_MS} ms`, reached: coldP99 <= AIM_COLD_MS },
    ],
    programs: { go: ['go', 'version'] },
  };
}
