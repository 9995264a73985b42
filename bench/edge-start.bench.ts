// An edge with 100,000 sites from its disk state: process start to the first correct answer, and its memory.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { edgeCommand } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { residentMiB } from './lib/machine.ts';
import { answers, freePort, nginxCommand, startServer } from './lib/servers.ts';
import { medianInterval, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'start of an edge with 100,000 sites from its disk state';
export const needs = ['nginx'];

const SITES = 100_000;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 3 : 9;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-start-'));
  const originPort = await freePort();
  const origin = await startServer(
    'origin',
    '1',
    nginxCommand(
      path.join(folder, 'origin'),
      `  server { listen 127.0.0.1:${originPort}; location / { return 200 "ok"; } }`,
    ),
    originPort,
    () => answers(originPort, 'origin'),
  );
  try {
    const state = path.join(folder, 'state');
    writeEdgeState({ folder: state, sites: SITES, origin: { address: '127.0.0.1', port: originPort } });
    const milliseconds: number[] = [];
    const memory: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const port = await freePort();
      const command = edgeCommand(state, port);
      const before = performance.now();
      const edge = await startServer('edge', '0-1', command, port, () => answers(port, siteHost(SITES - 1)));
      milliseconds.push(performance.now() - before);
      memory.push(residentMiB(edge.pid));
      log(`round ${round + 1}: ${Math.round(milliseconds.at(-1)!)} ms, ${Math.round(memory.at(-1)!)} MiB`);
      await edge.stop();
    }
    const start = medianInterval(milliseconds);
    const rss = medianInterval(memory);
    return {
      figures: {
        ms: Math.round(start.median),
        msInterval: [Math.round(start.low), Math.round(start.high)],
        rssMiB: round2(rss.median),
        rssInterval: [round2(rss.low), round2(rss.high)],
      },
      aims: [
        { aim: '≤ 3 s to the first correct answer', reached: start.high <= 3000 },
        { aim: '≤ 400 MiB', reached: rss.high <= 400 },
      ],
      programs: { go: ['go', 'version'] },
    };
  } finally {
    await origin.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
