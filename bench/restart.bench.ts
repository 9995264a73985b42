// Proxies that are started anew, and killed, while visitors come at a fixed rate over new connections of HTTP/1: who is
// refused, whose connection breaks, and how long it takes until the first of those who came after is answered.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { answers, freePort, nginxCommand, startServer } from './lib/servers.ts';
import { HOST, PROXIES, type StartedProxy } from './restart/proxies.ts';
import { Visitors } from './restart/visitors.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'restarts and kills of proxies while clients connect';
export const needs = ['haproxy', 'nginx'];

const PER_SECOND = 300;
const BEFORE_MS = 1000;
const AFTER_MS = 1000;
const FIRST_ANSWER_MS = 1500;

interface Figures {
  visits: number;
  refused: number;
  broken: number;
  /** From the signal to the first answer for somebody who came after it. */
  firstAnswerMs: number;
  longestVisitMs: number;
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 1 : 5;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-restart-'));
  const stops: (() => Promise<void>)[] = [];
  try {
    const originPort = await freePort();
    const site = `  server { listen 127.0.0.1:${originPort}; location / { return 200 "ok"; } }`;
    const command = nginxCommand(path.join(folder, 'origin'), site);
    const backend = await startServer('origin', '0-1', command, originPort, () => answers(originPort, 'origin'));
    stops.push(() => backend.stop());
    const figures: Record<string, Record<string, Figures[]>> = {};
    for (const [name, start] of Object.entries(PROXIES)) {
      const proxy = await start(path.join(folder, name), originPort);
      stops.push(() => proxy.stop());
      figures[name] = { planned: [], killed: [] };
      for (let round = 0; round < rounds; round++)
        for (const [way, act] of [
          ['planned', proxy.planned],
          ['killed', proxy.kill],
        ] as const) {
          const each = await during(proxy, act);
          figures[name][way]!.push(each);
          log(`${name}, ${way}, round ${round + 1} of ${rounds}: ${JSON.stringify(each)}`);
        }
      await stops.pop()!();
    }
    const ours = figures.edge!;
    const all = [...ours.planned!, ...ours.killed!];
    return {
      figures,
      aims: [
        { aim: 'edge: no connection refused', reached: all.every(({ refused }) => refused === 0) },
        {
          aim: 'edge: no visit broken by a planned restart',
          reached: ours.planned!.every(({ broken }) => broken === 0),
        },
        {
          aim: `edge, killed: first answer within ${FIRST_ANSWER_MS} ms`,
          reached: ours.killed!.every(({ firstAnswerMs }) => firstAnswerMs <= FIRST_ANSWER_MS),
        },
      ],
      programs: { nginx: ['nginx', '-v'], haproxy: ['haproxy', '-v'], go: ['go', 'version'] },
      notes: [
        `${PER_SECOND} visits a second, each over its own connection of HTTP/1; HTTP/2, HTTP/3 and WebSockets are not in it.`,
        'planned: edge: systemctl restart with the holder; nginx: upgrade of its binary; HAProxy and Caddy: reload.',
        'killed: nginx, HAProxy and Caddy are started again by the bench at once; a death of Caddy in the same minute has a pause of 1 s at the edge.',
      ],
    };
  } finally {
    for (const stop of stops.reverse()) await stop().catch(() => undefined);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function during(proxy: StartedProxy, act: () => Promise<void>): Promise<Figures> {
  const visitors = new Visitors(proxy.port, HOST, PER_SECOND);
  await delay(BEFORE_MS);
  const signalled = performance.now();
  await act();
  await delay(AFTER_MS);
  await visitors.stop();
  const { visits } = visitors;
  const after = visits.filter(({ from, failure }) => from >= signalled && failure === undefined);
  const count = (failure: string) => visits.filter((visit) => visit.failure === failure).length;
  return {
    visits: visits.length,
    refused: count('refused'),
    broken: count('broken'),
    firstAnswerMs: Math.round(Math.min(...after.map(({ to }) => to)) - signalled),
    longestVisitMs: Math.round(Math.max(...visits.map(({ from, to }) => to - from))),
  };
}
