// Reports of nodes while the database does not answer: one write at a time, and the newest of each node.
import test from 'ava';
import type { PositionRow } from '../../../../models/nodes/node-state.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import type { NodeIdentity } from '../../../../services/node-channel/identity.ts';
import { NodeReports } from '../../../../services/node-channel/node-reports.ts';
import { eventually } from '../../../helpers/eventually.ts';

interface Asked {
  name: string;
  values: unknown[];
  answer(): void;
  fail(): void;
}

/** A database that answers when the test says so. */
function slowDatabase(): { runtime: Runtime; asked: Asked[] } {
  const asked: Asked[] = [];
  const query = ({ name, values }: { name: string; values: unknown[] }) =>
    new Promise((resolve, reject) => {
      const answer = () => resolve({ rows: [], rowCount: 0 });
      asked.push({ name, values, answer, fail: () => reject(new Error('Query read timeout')) });
    });
  const runtime = {
    pools: { channel: { query } },
    redis: { publish: async () => 0 },
    log: { warn: () => undefined },
    feeds: [],
  } as unknown as Runtime;
  return { runtime, asked };
}

const node = (nodeId: string) => ({ nodeId, clusterId: 'c', name: nodeId }) as unknown as NodeIdentity;
const at = (nodeId: string, revision: number): PositionRow => {
  const now = new Date();
  const config = { at: now, epoch: 1n, track: 'S' as const, revision: BigInt(revision), setHash: '', failed: '[]' };
  return { nodeId, at: now, config, places: new Map() };
};
const revisions = ({ values }: Asked) =>
  (JSON.parse(values[0] as string) as { nodeId: string; revision: string }[]).map(
    ({ nodeId, revision }) => `${nodeId} ${revision}`,
  );

test('while a write waits for the database, the newest position of each node is kept and no other write begins', async (t) => {
  const { runtime, asked } = slowDatabase();
  const reports = new NodeReports(runtime);
  reports.applied(node('a'), at('a', 1));
  await eventually(() => asked.length === 1);
  for (let revision = 2; revision <= 500; revision++) {
    reports.applied(node('a'), at('a', revision));
    reports.applied(node('b'), at('b', revision));
    if (revision % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 60));
  }
  t.is(asked.length, 1, 'nothing is chained');
  asked[0]!.answer();
  await eventually(() => asked.length === 2);
  t.deepEqual(revisions(asked[1]!).sort(), ['a 500', 'b 500']);
  asked[1]!.answer();
  await reports.stop();
  t.is(asked.length, 2, 'nothing stale is written afterwards');
});

test('what a failed write may still do late is written over', async (t) => {
  const { runtime, asked } = slowDatabase();
  const reports = new NodeReports(runtime);
  reports.applied(node('a'), at('a', 1));
  await eventually(() => asked.length === 1);
  asked[0]!.fail();
  const next = async (revision: number, writes: number) => {
    // Said again by each heartbeat, and written only when it is news.
    await eventually(() => {
      reports.applied(node('a'), at('a', revision));
      return asked.length === writes;
    });
    t.deepEqual(revisions(asked[writes - 1]!), [`a ${revision}`]);
    asked[writes - 1]!.answer();
  };
  await next(2, 2);
  await next(2, 3);
  await reports.stop();
});
