// Watchers of live updates that do not keep up, and too many of them.
import { PassThrough } from 'node:stream';
import test from 'ava';
import { errorCodeOf } from '../../contract/errors.ts';
import type { LiveLine } from '../../contract/resources/live.ts';
import { appendHints } from '../../runtime/live-stream.ts';
import { LiveHub } from '../../services/api-gateway/live/live-hub.ts';
import { eventually } from '../helpers/eventually.ts';
import { createPipeline, type Pipeline } from '../helpers/pipeline.ts';

let pipeline: Pipeline;
test.before(async () => {
  pipeline = await createPipeline();
});
test.after.always(() => pipeline?.close());

async function startHub(
  t: { teardown(work: () => unknown): void },
  limits?: { perSession: number; perProcess: number },
) {
  pipeline.runtime.metrics.clear();
  const hub = new LiveHub(pipeline.runtime, async (tokens) => tokens.map(() => true), limits);
  t.teardown(() => hub.stop());
  return hub;
}

/** A reader at the far end of a stream that has begun. */
async function opened(hub: LiveHub, token: string, highWaterMark?: number) {
  const far = reader(highWaterMark);
  hub.open(token, null, far.sink as never);
  await eventually(() => far.sink.readableLength > 0);
  return far;
}

const tell = (...hints: string[]) => appendHints(pipeline.runtime.redis, pipeline.runtime.env.redisPrefix, hints);

/** The far end of a stream; takes what comes only when it is asked to. */
function reader(highWaterMark?: number) {
  const sink = new PassThrough(highWaterMark === undefined ? {} : { highWaterMark });
  const lines: LiveLine[] = [];
  const take = () => {
    const text = (sink.read() as Buffer | null)?.toString() ?? '';
    lines.push(
      ...text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as LiveLine),
    );
  };
  return { sink, lines, take };
}

const sitesOf = (lines: readonly LiveLine[]) =>
  lines.flatMap((line) => (line.type === 'events' ? line.events : [])).flatMap(({ ids }) => ids ?? []);

test.serial(
  'a reader that takes nothing holds up nobody, costs one line, and gets the rest once it reads',
  async (t) => {
    const hub = await startHub(t);
    const [slow, quick] = [await opened(hub, 'a', 8), await opened(hub, 'b')];
    const told = Array.from({ length: 20 }, (_, index) => `slow-${index}`);
    for (const id of told) {
      await tell(`sites ${id}`);
      await eventually(() => {
        quick.take();
        return sitesOf(quick.lines).includes(id);
      });
    }
    const held = slow.sink.readableLength;
    t.true(held < 300, `${held} bytes wait for it`);
    await eventually(() => {
      slow.take();
      return sitesOf(slow.lines).length >= told.length;
    });
    t.deepEqual(sitesOf(slow.lines), told);
    t.is(slow.lines.filter(({ type }) => type === 'reset').length, 0);
  },
);

test.serial('a reader whose place is lost is told to read again, and goes on', async (t) => {
  const hub = await startHub(t);
  const slow = await opened(hub, 'a', 8);
  // More than is kept.
  for (let index = 0; index < 3_200; index += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, next) => tell(`sites lost-${index + next}`)));
  }
  const quick = await opened(hub, 'b');
  // Until the hub has told everything of before: a reset of its own may come while there is more to tell.
  await eventually(async () => {
    await tell('settings last');
    quick.take();
    return JSON.stringify(quick.lines).includes('last');
  });
  await eventually(() => {
    slow.take();
    return slow.lines.some(({ type }) => type === 'reset');
  });
  // What is told while a place is taken anew is part of the reset.
  await eventually(async () => {
    await tell('sites after');
    slow.take();
    return sitesOf(slow.lines).includes('after');
  });
  t.deepEqual(
    sitesOf(slow.lines).filter((id) => id.startsWith('lost-')),
    [],
  );
});

test.serial('readers that are ahead are told to read again after a moment, whatever else happens', async (t) => {
  const hub = await startHub(t);
  await opened(hub, 'a');
  // In a busy process a timer fires up to a millisecond before its time, or not, by where in the millisecond it began.
  let waiting = true;
  const keepBusy = () => {
    if (waiting) setImmediate(keepBusy);
  };
  keepBusy();
  t.teardown(() => {
    waiting = false;
  });
  const readers: ReturnType<typeof reader>[] = [];
  for (let count = 0; count < 20; count++) {
    const ahead = reader();
    hub.open('b', '999999999999999-0', ahead.sink as never);
    readers.push(ahead);
    const next = performance.now() + 1.15;
    while (performance.now() < next);
  }
  const first = ({ lines }: ReturnType<typeof reader>) => lines.find(({ type }) => type !== 'ping')?.type;
  await eventually(() => {
    for (const ahead of readers) ahead.take();
    return readers.every((ahead) => first(ahead) !== undefined);
  });
  t.deepEqual([...new Set(readers.map(first))], ['reset']);
});

test.serial('a process has a bound of streams, and a place again when one ends', async (t) => {
  const hub = await startHub(t, { perSession: 2, perProcess: 3 });
  const readers = [reader(), reader(), reader()];
  const codeOf = (token: string) => {
    try {
      hub.admit(token);
      return null;
    } catch (error) {
      return errorCodeOf(error);
    }
  };
  for (const [index, token] of ['a', 'a', 'b'].entries()) {
    t.is(codeOf(token), null);
    hub.open(token, null, readers[index]!.sink as never);
    if (index === 1) t.is(codeOf('a'), 'LIVE_STREAM_LIMIT');
  }
  t.is(codeOf('c'), 'LIVE_STREAM_LIMIT');
  readers[0]!.sink.destroy();
  await eventually(() => codeOf('c') === null);
});

test.serial('a hub that stops ends its streams and takes no more', async (t) => {
  const hub = await startHub(t);
  const one = await opened(hub, 'a');
  await hub.stop();
  await eventually(() => {
    one.take();
    return one.lines.some((line) => line.type === 'end' && line.reason === 'stopping');
  });
  t.is(errorCodeOf(t.throws(() => hub.admit('b'))), 'SERVICE_UNAVAILABLE');
});
