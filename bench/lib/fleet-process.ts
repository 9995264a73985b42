// A simulated fleet in a process of its own, so that its work does not delay the clock of the benchmark that watches it.
import { type ChildProcess, fork } from 'node:child_process';
import { Backlog, backlogCounts } from '../fleet/backlog.ts';
import { ALL_FEATURES, startFleet } from '../fleet/fleet.ts';
import type { Installation } from './stack.ts';

/** What nodes follow by numbers. */
type Feed = 'bans' | 'revision' | 'acme' | 'purges';

/** What the benchmark asks of the fleet's process. */
type Question =
  | { type: 'start'; serverUrl: string; nodes: number; joinsAtHead: boolean }
  | { type: 'token'; id: number; token: { token: string; serverUrl: string; caSha256: string } }
  | { type: Feed; id: number; number: string }
  | { type: 'pace'; heartbeatMs: number }
  | { type: 'backlog'; siteIds: readonly string[]; minutes: number }
  | { type: 'deliver'; on: boolean }
  | { type: 'reports' | 'backlog-left'; id: number };

type Answer =
  | { type: 'token'; id: number; index: number }
  | { type: 'ready' }
  | { type: 'received'; id: number; at: (number | null)[] }
  | { type: 'count'; id: number; count: number }
  | { type: 'failed'; message: string };

const WAIT_MS = 30_000;
const START_MS = 300_000;

export interface FleetProcess {
  pid: number;
  /** Unix ms (with fractions) at which each node had the ban; waits until all have. */
  receivedBan(sequence: string): Promise<number[]>;
  receivedRevision(revision: string): Promise<number[]>;
  /** The same for what certificate authorities are answered. */
  receivedAcme(sequence: string): Promise<number[]>;
  /** The same for purges. */
  receivedPurge(sequence: string): Promise<number[]>;
  /** Every node sends a heartbeat this often from now on. */
  pace(heartbeatMs: number): void;
  /** Heartbeats and acknowledgements that the console has taken so far. */
  reports(): Promise<number>;
  /** Every node has counted these sites for so many minutes while it was away. */
  keepBacklog(siteIds: readonly string[], minutes: number): void;
  /** Nodes deliver what they kept, or stop it for a while. */
  deliver(on: boolean): void;
  /** Batches that the console does not have. */
  backlogLeft(): Promise<number>;
  stop(): void;
}

/** Enrolls and connects `nodes` simulated nodes. */
export async function startFleetProcess(
  stack: Installation,
  nodes: number,
  { joinsAtHead = false } = {},
): Promise<FleetProcess> {
  const child = fork(import.meta.filename, ['fleet'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const waiting = new Map<number, (at: number[]) => void>();
  const counting = new Map<number, (count: number) => void>();
  // Why the fleet is over, once it is; no question is answered then.
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => undefined);
  let nextId = 0;
  const ask = (type: Feed, number: string): Promise<number[]> => {
    const id = nextId++;
    const answered = new Promise<number[]>((resolve) => {
      waiting.set(id, resolve);
      child.send({ type, id, number } satisfies Question);
    });
    return Promise.race([answered, over.promise]);
  };
  const started = new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the fleet did not start in time')), START_MS);
    child.on('exit', (code) => over.reject(new Error(`the fleet ended with ${code}`)));
    child.on('message', (message) => {
      const answer = message as Answer;
      if (answer.type === 'token') void giveToken(stack, child, answer).catch(over.reject);
      if (answer.type === 'received') waiting.get(answer.id)?.(answer.at.map((time) => time ?? Number.NaN));
      if (answer.type === 'count') counting.get(answer.id)?.(answer.count);
      if (answer.type === 'failed') over.reject(new Error(`the fleet: ${answer.message}`));
      if (answer.type === 'ready') {
        clearTimeout(timer);
        resolve();
      }
    });
    child.send({ type: 'start', serverUrl: stack.facts.nodeApiUrl, nodes, joinsAtHead } satisfies Question);
  });
  await Promise.race([started, over.promise]);
  const count = (type: 'reports' | 'backlog-left'): Promise<number> =>
    new Promise((resolve) => {
      const id = nextId++;
      counting.set(id, (answer) => {
        counting.delete(id);
        resolve(answer);
      });
      child.send({ type, id } satisfies Question);
    });
  return {
    pid: child.pid!,
    receivedBan: (sequence) => ask('bans', sequence),
    receivedRevision: (revision) => ask('revision', revision),
    receivedAcme: (sequence) => ask('acme', sequence),
    receivedPurge: (sequence) => ask('purges', sequence),
    pace: (heartbeatMs) => void child.send({ type: 'pace', heartbeatMs } satisfies Question),
    reports: () => count('reports'),
    keepBacklog: (siteIds, minutes) => void child.send({ type: 'backlog', siteIds, minutes } satisfies Question),
    deliver: (on) => void child.send({ type: 'deliver', on } satisfies Question),
    backlogLeft: () => count('backlog-left'),
    stop: () => void child.kill('SIGKILL'),
  };
}

async function giveToken(stack: Installation, child: ChildProcess, { id, index }: { id: number; index: number }) {
  const token = await stack.client.rpc<{ token: string; serverUrl: string; caSha256: string }>(
    'enrollmentTokens.create',
    { clusterId: stack.facts.clusterId, nodeName: `simulated-${index}` },
  );
  child.send({ type: 'token', id, token } satisfies Question);
}

async function serveFleet(): Promise<void> {
  const say = (answer: Answer) => process.send!(answer);
  const tokens = new Map<number, (token: Extract<Question, { type: 'token' }>['token']) => void>();
  let nextId = 0;
  let fleet: Awaited<ReturnType<typeof startFleet>> | null = null;
  let serverUrl = '';
  let backlogs: Backlog[] = [];
  process.on('disconnect', () => process.exit(0));
  process.on('message', async (message) => {
    const question = message as Question;
    if (question.type === 'token') tokens.get(question.id)?.(question.token);
    if (question.type === 'start') {
      ({ serverUrl } = question);
      fleet = await startFleet({
        nodes: question.nodes,
        serverUrl: question.serverUrl,
        joinsAtHead: question.joinsAtHead,
        features: ALL_FEATURES,
        newToken: (index) => {
          const id = nextId++;
          say({ type: 'token', id, index });
          return new Promise((resolve) => tokens.set(id, resolve));
        },
      });
      say({ type: 'ready' });
    }
    if (question.type === 'pace') for (const node of fleet?.nodes ?? []) node.pace(question.heartbeatMs);
    if (question.type === 'reports') {
      const count = fleet?.nodes.reduce((sum, { counts }) => sum + counts.reports, 0) ?? 0;
      say({ type: 'count', id: question.id, count });
    }
    if (question.type === 'backlog') {
      const counts = backlogCounts(question.siteIds, question.minutes);
      backlogs = fleet?.identities.map((identity) => new Backlog(serverUrl, identity, counts)) ?? [];
    }
    if (question.type === 'deliver') for (const each of backlogs) question.on ? each.resume() : each.pause();
    if (question.type === 'backlog-left') {
      say({ type: 'count', id: question.id, count: backlogs.reduce((sum, { left }) => sum + left, 0) });
    }
    if (question.type === 'bans' && fleet) {
      await fleet.waitForBans(question.number, WAIT_MS);
      say({ type: 'received', id: question.id, at: fleet.received(question.number).map((time) => time ?? null) });
    }
    if (question.type === 'revision' && fleet) {
      await fleet.waitForRevision(question.number, WAIT_MS);
      const at = fleet.receivedRevision(question.number).map((time) => time ?? null);
      say({ type: 'received', id: question.id, at });
    }
    if (question.type === 'purges' && fleet) {
      await fleet.waitForPurges(question.number, WAIT_MS);
      const at = fleet.receivedPurges(question.number).map((time) => time ?? null);
      say({ type: 'received', id: question.id, at });
    }
    if (question.type === 'acme' && fleet) {
      await fleet.waitForAcme(question.number, WAIT_MS);
      const at = fleet.receivedAcme(question.number).map((time) => time ?? null);
      say({ type: 'received', id: question.id, at });
    }
  });
  process.on('unhandledRejection', (error) => {
    say({ type: 'failed', message: String(error) });
    setTimeout(() => process.exit(1), 100);
  });
}

if (process.argv[2] === 'fleet' && process.send) await serveFleet();
