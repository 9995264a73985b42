// Whatever process is killed in the middle of 200 bans and 50 publications: afterwards every confirmed change is on the
// node, exactly once in effect, and the edge never stopped serving for longer than the killed part took to return. The long form
// kills each process.
import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import pg from 'pg';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';
import { orAll } from '../helpers/long-form.ts';

const BANS = 200;
const PUBLICATIONS = 50;
const BAN_CLIENTS = 6;
const PUBLISH_CLIENTS = 2;
/** Confirmed changes after which the victim is killed. */
const KILL_AFTER = 60;
const CONFIRM_MS = 90_000;
/** Longer than a request (10 s) and a transaction (5 s) may take. */
const LONGEST_REQUEST_MS = 12_000;
const CONVERGE_MS = 90_000;

let installation: Installation;

test.before('start everything', async () => {
  installation = await startInstallation();
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', async () => {
  await installation?.stop();
});

interface Victim {
  name: string;
  /** Dies in the short form, too. */
  always?: true;
  kill(target: Installation): Promise<void> | void;
}

const sigkill = (pid: number | undefined) => {
  if (pid === undefined) throw new Error('there is nothing to kill');
  process.kill(pid, 'SIGKILL');
};

const VICTIMS: readonly Victim[] = [
  { name: 'the web process', kill: ({ consoles }) => sigkill(consoles.app.child.pid) },
  {
    name: 'the worker with relay and actors',
    always: true,
    kill: ({ consoles }) => sigkill(consoles.worker.child.pid),
  },
  { name: 'the node channel', kill: ({ consoles }) => sigkill(consoles.channel.child.pid) },
  { name: 'the agent', always: true, kill: ({ node }) => sigkill(node.pids()?.agent) },
  { name: 'Caddy', kill: ({ node }) => sigkill(node.pids()?.caddy) },
  {
    name: 'the supervisor',
    kill: async ({ node }) => {
      sigkill(node.supervisor.pid);
      await node.supervisor.ended;
      await node.start();
    },
  },
  { name: 'Redis', always: true, kill: ({ servers }) => sigkill(servers.redis.pid) },
  {
    name: "Redis' content (FLUSHALL)",
    kill: async ({ redisUrl }) => {
      const redis = new Redis(redisUrl);
      await redis.flushall();
      redis.disconnect();
    },
  },
  { name: 'PostgreSQL', always: true, kill: ({ servers }) => sigkill(servers.postgres.pid) },
];

for (const [index, victim] of orAll(VICTIMS, ({ always }) => always === true).entries()) {
  test.serial(`${victim.name} dies in the middle of ${BANS} bans and ${PUBLICATIONS} publications`, async (t) => {
    await dies(t, victim, index + 1);
  });
}

async function dies(t: ExecutionContext, victim: Victim, round: number): Promise<void> {
  const { client } = installation;
  // A key takes 600 requests in a row; what is retried counts again.
  const keys: string[] = [];
  for (let index = 0; index < 4; index++) keys.push(await client.createKey(`round ${round}.${index}`));
  const nextKey = () => {
    keys.push(keys.shift()!);
    return keys[0]!;
  };
  const before = await facts(installation);
  const tasks: { path: string; body: Record<string, unknown> }[] = [];
  for (let index = 0; index < BANS; index++) {
    const body = { scope: 'platform', cidr: address(round, index), reason: 'attack', durationSeconds: 3600 };
    tasks.push({ path: '/bans', body });
  }
  const bans = tasks.map((task) => ({ ...task, idempotencyKey: randomUUID() }));
  const sites = Array.from({ length: PUBLICATIONS }, (_, index) => ({
    path: '/sites',
    body: { domains: [host(round, index)], origins: [installation.origin] } as Record<string, unknown>,
    idempotencyKey: randomUUID(),
  }));
  let confirmed = 0;
  let killed: Promise<void> | null = null;
  const work = async (queue: typeof bans) => {
    for (;;) {
      const task = queue.shift();
      if (!task) return;
      await confirm(installation, nextKey, task);
      confirmed += 1;
      if (confirmed === KILL_AFTER) killed = Promise.resolve(victim.kill(installation));
    }
  };
  const banQueue = [...bans];
  const siteQueue = [...sites];
  await Promise.all([
    ...Array.from({ length: BAN_CLIENTS }, () => work(banQueue)),
    ...Array.from({ length: PUBLISH_CLIENTS }, () => work(siteQueue)),
  ]);
  await killed;

  const after = await eventually(
    async () => {
      const now = await facts(installation);
      return now.settled ? now : undefined;
    },
    { timeoutMs: CONVERGE_MS, everyMs: 200, what: 'the node to reach its target' },
  );
  t.is(after.activeBans - before.activeBans, BANS, 'every ban exists once');
  t.is(after.banAudits - before.banAudits, BANS, 'every ban was made once');
  t.is(after.revision - before.revision, PUBLICATIONS, 'every publication is one revision, none was skipped');
  t.is(after.nodeBans - before.nodeBans, BANS, 'the node holds every ban');
  for (let index = 0; index < BANS; index += 7) {
    const answer = await edgeGet(installation.edge, host(round, 0), { [CLIENT_IP_HEADER]: address(round, index) });
    t.is(answer.status, 403, address(round, index));
    t.is(answer.headers['x-svc-error'], 'ip-banned');
  }
  for (let index = 0; index < PUBLICATIONS; index++) {
    const answer = await edgeGet(installation.edge, host(round, index), { [CLIENT_IP_HEADER]: '192.0.2.200' });
    t.is(answer.status, 200, host(round, index));
  }
}

const address = (round: number, index: number) => `2001:db8:${round}:${index.toString(16)}::1`;
const host = (round: number, index: number) => `site-${index}.round-${round}.example`;

/**
 * Sends the request under its idempotency key until it is confirmed; what is in between may be anything but a refusal. A
 * killed process leaves its records running. Nothing runs for longer than a request or a transaction may, so after that
 * a record still running says that nothing was committed, and the request may be sent under another key.
 */
async function confirm(
  { client }: Installation,
  nextKey: () => string,
  task: { path: string; body: Record<string, unknown>; idempotencyKey: string },
): Promise<void> {
  let { idempotencyKey } = task;
  let runningSince: number | null = null;
  await eventually(
    async () => {
      const headers = { 'x-api-key': nextKey(), 'idempotency-key': idempotencyKey };
      const answer = await client.request<{ code?: string }>('POST', `/api/v1${task.path}`, task.body, headers);
      if (answer.status < 300) return true;
      const running = answer.body.code === 'IDEMPOTENCY_IN_PROGRESS';
      if (answer.status < 500 && !running) {
        throw new Error(`${task.path} answered ${answer.status} ${JSON.stringify(answer.body)}`);
      }
      runningSince = running ? (runningSince ?? Date.now()) : null;
      if (runningSince !== null && Date.now() - runningSince > LONGEST_REQUEST_MS) {
        idempotencyKey = randomUUID();
        runningSince = null;
      }
      return false;
    },
    { timeoutMs: CONFIRM_MS, everyMs: 300, what: `${task.path} to be confirmed` },
  );
}

interface Facts {
  activeBans: number;
  banAudits: number;
  revision: number;
  nodeBans: number;
  settled: boolean;
}

/** What the database holds and what the node says, read from the database so that the API's limits do not matter. */
async function facts({ databaseUrl, node, clusterId }: Installation): Promise<Facts> {
  const database = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 2000 });
  await database.connect();
  try {
    const { rows } = await database.query<Record<string, string | null>>(
      `select (select count(*) from ban where lifted_at is null and expires_at > now()) as active,
              (select count(*) from audit_entry where action = 'ban.create') as audits,
              (select revision from cluster_head where cluster_id = $2) as revision,
              (select max(seq) from ban_head) as feed,
              s.revision as node_revision, s.ban_sequence as node_feed,
              s.ban_status->>'entries' as node_bans
         from node_state s where node_id = $1`,
      [node.nodeId, clusterId],
    );
    const row = rows[0]!;
    const activeBans = Number(row.active);
    const nodeBans = Number(row.node_bans ?? 0);
    return {
      activeBans,
      banAudits: Number(row.audits),
      revision: Number(row.revision),
      nodeBans,
      settled: row.revision === row.node_revision && row.feed === row.node_feed && nodeBans === activeBans,
    };
  } finally {
    await database.end();
  }
}
