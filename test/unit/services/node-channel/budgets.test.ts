// A node over its budget waits or is refused alone.
import { ConnectError } from '@connectrpc/connect';
import test from 'ava';
import { Registry } from 'prom-client';
import { BUDGETS, Budgets, type Lane, type Table } from '../../../../services/node-channel/budgets.ts';

const SMALL = { atOnce: 2, waiting: 1, bytesAtOnce: 100, calls: 5, rows: 10, bytes: 1_000 };

/** Budgets of a process, and the calls of nodes that end when the test says so. */
function started(more: Partial<typeof SMALL> = {}) {
  const over: string[] = [];
  const table = { ...BUDGETS, security: { ...SMALL, ...more } } as unknown as Table;
  const budgets = new Budgets({ metrics: new Registry() }, (nodeId, lane) => over.push(`${nodeId} ${lane}`), table);
  const call = (nodeId: string, lane: Lane = 'security') => {
    const ends: (() => void)[] = [];
    const admitted = budgets.admit(nodeId, lane, (end) => ends.push(end));
    const end = () => {
      for (const listener of ends) listener();
    };
    return { admitted, end };
  };
  return { call, over };
}

test('calls above those at once wait for the node itself; one more is refused, and other nodes and lanes go on', async (t) => {
  const { call, over } = started();
  const [first, second, third] = [call('a'), call('a'), call('a')];
  await Promise.all([first.admitted, second.admitted]);
  let begun = false;
  void third.admitted.then(() => {
    begun = true;
  });
  const refused = await t.throwsAsync(call('a').admitted, { instanceOf: ConnectError });
  t.is(refused.rawMessage, 'the node is over its budget of security calls at once; retry later');
  await Promise.all([call('b').admitted, call('a', 'telemetry').admitted]);
  t.false(begun);
  first.end();
  await third.admitted;
  t.deepEqual(over, ['a security']);
});

test('a call whose connection ends while it waits leaves no place taken', async (t) => {
  const { call } = started({ atOnce: 1 });
  const first = call('a');
  await first.admitted;
  const second = call('a');
  second.end();
  first.end();
  await t.throwsAsync(second.admitted, { message: /closed during the call/ });
  await t.notThrowsAsync(call('a').admitted);
});

test('calls, rows and bytes a minute: what is over is refused until the budget has refilled', async (t) => {
  const { call } = started({ atOnce: 9, calls: 3 });
  const rows = await call('a').admitted;
  rows.rows(11);
  t.throws(() => rows.rows(1), { message: /security rows a minute/ });
  await t.throwsAsync(call('a').admitted, { message: /security rows a minute/ });
  const bytes = await call('b').admitted;
  bytes.send(1_001);
  await t.throwsAsync(call('b').admitted, { message: /security bytes a minute/ });
  for (let index = 0; index < 3; index++) await call('c').admitted;
  await t.throwsAsync(call('c').admitted, { message: /security calls a minute/ });
});

test('bytes at once are those of all calls of the node, and free again when a call ends', async (t) => {
  const { call } = started();
  const [first, second] = [call('a'), call('a')];
  (await first.admitted).receive(60);
  const held = await second.admitted;
  t.throws(() => held.receive(41), { message: /security bytes at once/ });
  first.end();
  t.notThrows(() => held.receive(41));
});
