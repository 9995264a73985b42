import test from 'ava';
import fc from 'fast-check';
import { EdgeError } from '../../../../agents/edge/caddy/edge-error.ts';
import { type Change, Pusher } from '../../../../agents/edge/caddy/pusher.ts';
import { memoryLog } from '../helpers/log.ts';

interface Numbers extends Change<number> {
  added: number[];
}

/** A data plane that holds every number up to its position, and a journal; both may be at odds. */
function setUp(delay: (failures: number) => number = () => 0) {
  const edge = { position: 0, serving: [] as number[] };
  const journal: number[] = [];
  const calls: string[] = [];
  let failure: string | undefined;
  let readable = true;
  const applied: { position: number; micros: number }[] = [];
  const problems: string[] = [];
  const step = async (name: string): Promise<void> => {
    calls.push(name);
    await new Promise((resolve) => setImmediate(resolve));
    if (failure === undefined) return;
    const code = failure;
    failure = undefined;
    throw new EdgeError(code, code);
  };
  const pusher = new Pusher<number, Numbers, number>({
    name: 'numbers',
    log: memoryLog().log,
    position: () => journal.length,
    same: (left, right) => left === right,
    merge: (changes) => ({
      base: changes[0]!.base,
      target: changes.at(-1)!.target,
      receivedAt: changes[0]!.receivedAt,
      added: changes.flatMap((change) => change.added),
    }),
    push: async (change) => {
      await step(`push ${change.base}->${change.target}`);
      if (change.base !== edge.position) throw new EdgeError('failed_precondition', 'another base');
      edge.serving.push(...change.added);
      edge.position = change.target;
      return edge.position;
    },
    reload: async () => {
      await step('reload');
      if (!readable) throw new EdgeError('failed_precondition', 'journal_unreadable: it is missing');
      edge.serving = [...journal];
      edge.position = journal.length;
      return edge.position;
    },
    repair: async () => {
      await step('repair');
      readable = true;
    },
    isAhead: (position) => position > journal.length,
    positionOf: (answer) => answer,
    applied: (position, micros) => applied.push({ position, micros }),
    failed: (problem) => problems.push(problem),
    delay,
  });
  return {
    edge,
    journal,
    calls,
    applied,
    problems,
    pusher,
    failNext: (code: string) => {
      failure = code;
    },
    loseJournal: () => {
      readable = false;
    },
    change: () => {
      const base = journal.length;
      journal.push(base + 1);
      pusher.enqueue({ base, target: base + 1, receivedAt: performance.now(), added: [base + 1] });
    },
    settled: async () => {
      for (let turn = 0; turn < 200 && !pusher.idle && !pusher.isDown; turn++)
        await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('nothing is pushed before the data plane has answered, then exactly what it lacks', async (t) => {
  const { pusher, change, calls, edge, settled } = setUp();
  change();
  change();
  t.deepEqual(calls, []);
  pusher.reconcile(1);
  edge.position = 1;
  edge.serving = [1];
  await settled();
  t.deepEqual(calls, ['push 1->2']);
  t.deepEqual(edge.serving, [1, 2]);
});

test('changes that arrive during a call go out together in the next one', async (t) => {
  const { pusher, change, calls, edge, applied, settled } = setUp();
  pusher.reconcile(0);
  for (let count = 0; count < 5; count++) change();
  await settled();
  t.deepEqual(calls, ['push 0->1', 'push 1->5']);
  t.deepEqual(edge.serving, [1, 2, 3, 4, 5]);
  t.deepEqual(
    applied.map(({ position }) => position),
    [1, 5],
  );
  t.true(applied.every(({ micros }) => micros > 0));
});

test('a data plane with another base reads the journal once', async (t) => {
  const { pusher, change, calls, edge, settled } = setUp();
  pusher.reconcile(0);
  edge.position = 77;
  change();
  change();
  await settled();
  t.deepEqual(calls, ['push 0->1', 'reload']);
  t.deepEqual(edge.serving, [1, 2]);
});

test('a position that is in no history is answered by a reload', async (t) => {
  const { pusher, change, calls, settled } = setUp();
  change();
  pusher.reconcile(-123);
  await settled();
  t.deepEqual(calls, ['reload']);
});

test('no answer: changes wait for the next status and are then pushed', async (t) => {
  const { pusher, change, calls, edge, problems, failNext, settled } = setUp();
  pusher.reconcile(0);
  failNext('unavailable');
  change();
  await settled();
  t.true(pusher.isDown);
  t.deepEqual(problems, ['unavailable']);
  change();
  pusher.reconcile(edge.position);
  await settled();
  t.deepEqual(calls, ['push 0->1', 'push 0->2']);
  t.deepEqual(edge.serving, [1, 2]);
});

test('a journal that the data plane cannot read is written anew and read again, and what it serves stays until then', async (t) => {
  const { pusher, change, calls, edge, problems, loseJournal, settled } = setUp();
  pusher.reconcile(0);
  change();
  await settled();
  loseJournal();
  pusher.requestReload();
  await settled();
  t.deepEqual(calls, ['push 0->1', 'reload', 'repair']);
  t.deepEqual(edge.serving, [1]);
  t.regex(problems[0]!, /journal_unreadable/);
  pusher.reconcile(edge.position);
  await settled();
  t.deepEqual(calls.slice(3), ['reload']);
  t.deepEqual(edge.serving, [1]);
});

test('what is refused is not pushed again: after a back-off the data plane reads the journal', async (t) => {
  const delays: number[] = [];
  let delayMs = 3_600_000;
  const { pusher, change, calls, edge, problems, failNext, settled } = setUp((failures) => {
    delays.push(failures);
    return delayMs;
  });
  pusher.reconcile(0);
  failNext('resource_exhausted');
  change();
  await settled();
  for (let status = 0; status < 20; status++) pusher.reconcile(0);
  await settled();
  t.deepEqual(calls, ['push 0->1']);
  t.deepEqual(problems, ['resource_exhausted']);
  t.true(pusher.retryInMs > 0);
  // Another process has refused nothing yet; its failures count from the start.
  pusher.forgive();
  delayMs = 0;
  for (const code of ['internal', 'unavailable']) {
    failNext(code);
    pusher.reconcile(0);
    await settled();
  }
  pusher.reconcile(0);
  await settled();
  t.is(calls[1], 'reload');
  t.is(calls.length, 4);
  t.deepEqual(delays, [0, 0, 1]);
  t.deepEqual(edge.serving, [1]);
});

test('what the data plane holds beyond the journal is not taken back', async (t) => {
  const { pusher, change, calls, settled } = setUp();
  change();
  pusher.reconcile(5);
  await settled();
  t.deepEqual(calls, []);
  t.true(pusher.idle);
});

/** The console takes the journal back from 3 to 1. */
async function ahead() {
  const parts = setUp();
  parts.pusher.reconcile(0);
  for (let count = 0; count < 3; count++) parts.change();
  await parts.settled();
  parts.calls.length = 0;
  return parts;
}

for (const code of ['unavailable', 'internal']) {
  test(`a change that takes the journal back reaches the data plane although its push fails (${code})`, async (t) => {
    const { pusher, journal, calls, edge, settled, failNext } = await ahead();
    journal.length = 1;
    failNext(code);
    pusher.enqueue({ base: 3, target: 1, receivedAt: performance.now(), added: [] });
    await settled();
    pusher.reconcile(edge.position);
    await settled();
    t.deepEqual(calls, ['push 3->1', code === 'unavailable' ? 'push 3->1' : 'reload']);
    t.is(edge.position, 1);
  });

  test(`a journal that was replaced by an earlier one is read although reading fails (${code})`, async (t) => {
    const { pusher, journal, calls, edge, settled, failNext } = await ahead();
    journal.length = 1;
    failNext(code);
    pusher.requestReload();
    await settled();
    pusher.reconcile(edge.position);
    await settled();
    t.deepEqual(calls, ['reload', 'reload']);
    t.deepEqual(edge.serving, [1]);
    // It is not asked for again.
    edge.position = 3;
    pusher.reconcile(3);
    await settled();
    t.deepEqual(calls, ['reload', 'reload']);
  });
}

test('property: any mix of changes, failures, restarts and reconciliations ends with the data plane at the journal', async (t) => {
  const action = fc.oneof(
    fc.constant('change' as const),
    fc.constant('unavailable' as const),
    fc.constant('internal' as const),
    fc.constant('restart-old' as const),
    fc.constant('restart-empty' as const),
    fc.constant('reload' as const),
    fc.constant('unreadable' as const),
    fc.constant('status' as const),
    fc.constant('wait' as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 60 }), async (actions) => {
      const world = setUp();
      world.pusher.reconcile(0);
      for (const name of actions) {
        if (name === 'change') world.change();
        else if (name === 'unavailable' || name === 'internal') world.failNext(name);
        else if (name === 'restart-empty') Object.assign(world.edge, { position: 0, serving: [] });
        else if (name === 'restart-old') {
          const position = Math.floor(world.journal.length / 2);
          Object.assign(world.edge, { position, serving: world.journal.slice(0, position) });
        } else if (name === 'unreadable') world.loseJournal();
        else if (name === 'reload') world.pusher.requestReload();
        else if (name === 'status') world.pusher.reconcile(world.edge.position);
        else await new Promise((resolve) => setImmediate(resolve));
      }
      for (let round = 0; round < 10; round++) {
        await world.settled();
        world.pusher.reconcile(world.edge.position);
        await world.settled();
      }
      return JSON.stringify(world.edge.serving) === JSON.stringify(world.journal) && world.pusher.idle;
    }),
    { numRuns: 300 },
  );
  t.pass();
});
