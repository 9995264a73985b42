// Services in processes of their own: a request whose service is in another process beside the same request to a console in
// one process, in turns on the same database; and how soon each process serves again after kill −9.
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConsoleClient, TEST_OPERATOR } from '../bin/lib/console-client.ts';
import { startTestStores } from '../bin/lib/test-stores.ts';
import { buildWebConsole } from '../bin/lib/web-console.ts';
import { migrate } from '../migrations/run.ts';
import { Connection } from './fleet/connection.ts';
import { ALL_FEATURES, type Fleet, startFleet } from './fleet/fleet.ts';
import { medianInterval, round2, summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';
import { PROCESSES, ServiceProcesses } from './services/processes.ts';

export const title = 'requests to services in other processes, and how soon each serves again after kill −9';

const MORE_MS = 2;
const SERVES_MS = 5_000;
/** Between two probes of a process that was killed. */
const PROBE_MS = 10;
/** Of each kind; an access key takes 600 requests in a row. */
const PER_ROUND = 100;
/** After each request: what follows a change in processes that carry it on is over before the next one. */
const PAUSE_MS = 30;

type Kind = 'read' | 'ban';
type Times = Record<'apart' | 'whole', number[]>;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 12;
  const kills = quick ? 1 : 5;
  await buildWebConsole();
  const stores = await startTestStores(`${process.pid}-services`);
  const masterKey = randomBytes(32).toString('base64');
  const { postgres, redis } = stores;
  const [whole, apart] = [
    await ServiceProcesses.of(postgres.url, redis.url, masterKey),
    await ServiceProcesses.of(postgres.url, redis.url, masterKey),
  ];
  let fleet: Fleet | null = null;
  try {
    await migrate(postgres.url);
    const { setupToken } = await whole.start('whole');
    const client = new ConsoleClient(whole.url, whole.url);
    await client.setUp(setupToken!);
    const { site } = await client.api<{ site: { id: string; clusterId: string } }>('POST', '/sites', {
      domains: ['services.example.com'],
      origins: [{ address: '8.8.8.8' }],
    });
    await Promise.all([...PROCESSES.keys()].map((name) => apart.start(name)));
    const asker = new Asker(client, site.id, { apart, whole });
    await asker.reaches();
    const times: Record<Kind, Times> = { read: { apart: [], whole: [] }, ban: { apart: [], whole: [] } };
    for (let round = 0; round <= rounds; round++) {
      await client.createKey(`round ${round}`);
      for (const kind of ['read', 'ban'] as const)
        for (const where of round % 2 === 0 ? (['apart', 'whole'] as const) : (['whole', 'apart'] as const)) {
          const measured = await asker.measure(kind, where);
          // The first round warms up.
          if (round > 0) times[kind][where].push(...measured);
        }
      if (round > 0) log(`round ${round} of ${rounds}`);
    }
    await whole.stop();

    const behind = new ConsoleClient(apart.url, apart.url);
    const { email, password } = TEST_OPERATOR;
    await behind.signIn({ email, password });
    await behind.createKey('nodes');
    fleet = await startFleet({
      nodes: 1,
      serverUrl: apart.nodeApiUrl,
      newToken: () => behind.api('POST', '/enrollment-tokens', { clusterId: site.clusterId }),
      features: ALL_FEATURES,
      reconnectMs: 100,
    });
    const node = fleet;
    const serving: Record<string, { startMs: number[]; servesMs: number[] }> = {};
    for (let kill = 0; kill < kills; kill++) {
      client.accessKey = await behind.createKey(`kill ${kill}`);
      for (const name of PROCESSES.keys()) {
        const serves = probeOf(name, asker, node, apart.nodeApiUrl);
        await apart.kill(name);
        const begun = performance.now();
        const { startMs } = await apart.start(name);
        while (!(await serves())) await sleep(PROBE_MS);
        serving[name] ??= { startMs: [], servesMs: [] };
        serving[name].startMs.push(startMs);
        serving[name].servesMs.push(performance.now() - begun);
        await asker.reaches();
      }
      log(`kill ${kill + 1} of ${kills}`);
    }
    return result(times, serving);
  } finally {
    fleet?.stop();
    await Promise.all([whole.stop(), apart.stop()]);
    await stores.stop();
  }
}

function result(
  times: Record<Kind, Times>,
  serving: Record<string, { startMs: number[]; servesMs: number[] }>,
): BenchResult {
  const p50 = (sample: readonly number[]) => medianInterval(sample).median;
  const more = (kind: Kind) => round2(p50(times[kind].apart) - p50(times[kind].whole));
  const of = (kind: Kind) => ({
    otherProcess: summary(times[kind].apart),
    oneProcess: summary(times[kind].whole),
    moreAtP50Ms: more(kind),
  });
  const slowest = Math.max(
    ...Object.values(serving).flatMap(({ startMs, servesMs }) => servesMs.map((ms, index) => ms - startMs[index]!)),
  );
  const again = Object.entries(serving).map(([name, { startMs, servesMs }]) => [
    name,
    {
      startsInMs: Math.round(p50(startMs)),
      servesAfterMs: Math.round(p50(servesMs)),
      slowestMs: Math.round(Math.max(...servesMs)),
    },
  ]);
  return {
    figures: { read: of('read'), ban: of('ban'), again: Object.fromEntries(again) },
    aims: [
      { aim: `p50 of a read in another process ≤ ${MORE_MS} ms more`, reached: more('read') <= MORE_MS },
      { aim: `p50 of a ban in another process ≤ ${MORE_MS} ms more`, reached: more('ban') <= MORE_MS },
      { aim: `each serves within ${SERVES_MS} ms after its process runs`, reached: slowest <= SERVES_MS },
    ],
  };
}

/** Asks whether the process does its work again. */
function probeOf(name: string, asker: Asker, fleet: Fleet, nodeApiUrl: string): () => Promise<boolean> {
  if (name === 'node-channel') {
    const identity = fleet.identities[0]!;
    return async () => {
      const connection = new Connection(nodeApiUrl, identity.authorityPem, identity);
      const served = await connection.call('getBans', {}).then(
        () => true,
        () => false,
      );
      connection.destroy();
      return served;
    };
  }
  if (name !== 'worker') return () => asker.serves(name);
  // A ban made while nothing carried it on reaches the node.
  let made: Promise<string> | null = null;
  return async () => {
    made ??= asker.ban();
    await fleet.waitForBans(await made, 60_000);
    return true;
  };
}

class Asker {
  readonly #client: ConsoleClient;
  readonly #siteId: string;
  readonly #clients: Record<'apart' | 'whole', ConsoleClient>;
  #bans = 0;

  constructor(client: ConsoleClient, siteId: string, at: Record<'apart' | 'whole', ServiceProcesses>) {
    this.#client = client;
    this.#siteId = siteId;
    const of = ({ url }: ServiceProcesses) => new ConsoleClient(url, url);
    this.#clients = { apart: of(at.apart), whole: of(at.whole) };
  }

  /** Milliseconds of each of some requests, one after the other. */
  async measure(kind: Kind, where: 'apart' | 'whole'): Promise<number[]> {
    const times: number[] = [];
    for (let count = 0; count < PER_ROUND; count++) {
      const begun = performance.now();
      if (kind === 'ban') await this.ban(where);
      else await this.#ask(where, 'GET', `/sites/${this.#siteId}`);
      times.push(performance.now() - begun);
      await sleep(PAUSE_MS);
    }
    return times;
  }

  /** Creates a ban; returns its number in the feed. */
  async ban(where: 'apart' | 'whole' = 'apart'): Promise<string> {
    const index = this.#bans++;
    const cidr = `20.0.${index >> 8}.${index & 255}`;
    const body = { scope: 'platform', cidr, reason: 'attack', durationSeconds: 3600 };
    const ban = (await this.#ask(where, 'POST', '/bans', body)) as { seq: string };
    return ban.seq;
  }

  /** Whether the process with this name answers; `gateway` is asked for what it has itself. */
  async serves(name: string): Promise<boolean> {
    const day = 24 * 3600_000;
    const from = new Date(Math.floor(Date.now() / day) * day).toISOString();
    const paths: Record<string, string> = {
      gateway: '/me',
      sites: `/sites/${this.#siteId}`,
      protection: `/sites/${this.#siteId}/protection`,
      bans: '/bans?pageSize=1',
      waf: `/sites/${this.#siteId}/waf`,
      usage: `/usage?from=${from}&to=${new Date(Date.parse(from) + day).toISOString()}`,
    };
    return this.#ask('apart', 'GET', paths[name]!).then(
      () => true,
      () => false,
    );
  }

  /** Waits until every service answers. */
  async reaches(): Promise<void> {
    for (const name of ['gateway', 'sites', 'protection', 'bans', 'waf', 'usage'])
      while (!(await this.serves(name))) await sleep(PROBE_MS);
  }

  async #ask(where: 'apart' | 'whole', method: string, path: string, body?: unknown): Promise<unknown> {
    const headers = { 'x-api-key': this.#client.accessKey };
    const answer = await this.#clients[where].request(method, `/api/v1${path}`, body, headers);
    if (answer.status > 299) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
}
