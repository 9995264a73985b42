import test from 'ava';
import { NodeReport } from '../../../../../agents/edge/lib/node-report.ts';
import { type EntryReader, entryReaderPart, type Part, type PartKind } from '../../../../../agents/edge/lib/part.ts';
import { Parts } from '../../../../../agents/edge/lib/parts.ts';
import { memoryLog } from '../../helpers/log.ts';

/** A part that writes down its calls, and the parts that it needs. */
function recordingKind(name: string, calls: string[], needs: () => Part[] = () => [], more: Part = {}): PartKind {
  return {
    name,
    make: () => {
      needs();
      calls.push(`make ${name}`);
      return {
        start: () => void calls.push(`start ${name}`),
        event: ({ case: what }) => void calls.push(`${what} ${name}`),
        ...more,
      };
    },
  };
}

function partsOf(kinds: readonly PartKind[]) {
  const { log, lines } = memoryLog();
  // These kinds need neither a node nor a data plane.
  const parts: Parts = new Parts(kinds, (kind) => kind.make(undefined as never, undefined as never), log);
  return { parts, lines };
}

test('a part is made, started and told after the parts that it needs, wherever it is in the list', async (t) => {
  const calls: string[] = [];
  const second = recordingKind('second', calls);
  const first = recordingKind('first', calls, () => [parts.of(second)]);
  const third = recordingKind('third', calls, () => [parts.of(second)]);
  const { parts } = partsOf([first, second, third]);
  parts.makeAll();
  await parts.start();
  parts.tell({ case: 'connected' });
  const order = ['second', 'first', 'third'];
  t.deepEqual(
    calls,
    ['make', 'start', 'connected'].flatMap((call) => order.map((name) => `${call} ${name}`)),
  );
});

test('parts that need each other fail the start with a name', (t) => {
  const left: PartKind = recordingKind('left', [], () => [parts.of(right)]);
  const right: PartKind = recordingKind('right', [], () => [parts.of(left)]);
  const { parts } = partsOf([left, right]);
  t.throws(() => parts.makeAll(), { message: 'part left needs itself' });
});

test('a part that fails keeps no other one from its maintenance, its stop and its close', async (t) => {
  const calls: string[] = [];
  const fail = () => {
    throw new Error('broken disk');
  };
  const broken = recordingKind('broken', calls, undefined, { maintain: fail, stop: fail, close: fail });
  const sound = recordingKind('sound', calls, undefined, {
    maintain: () => void calls.push('maintain'),
    stop: async () => void calls.push('stop'),
    close: () => void calls.push('close'),
  });
  const { parts, lines } = partsOf([broken, sound]);
  parts.makeAll();
  await parts.maintain();
  await parts.stop();
  await parts.close();
  t.deepEqual(calls.slice(2), ['maintain', 'stop', 'close']);
  t.is(lines.filter((line) => line.includes('broken disk') && line.includes('"broken"')).length, 3);
});

test('only parts that read entries are asked to', (t) => {
  const reader: EntryReader = { entries: { put: () => undefined, remove: () => undefined, clear: () => undefined } };
  const kind = entryReaderPart({ name: 'reader', make: () => reader });
  const { parts } = partsOf([recordingKind('other', []), kind]);
  t.deepEqual(parts.entryReaders(), [reader]);
});

test('parts add to one report', (t) => {
  const kindOf = (name: string): PartKind => ({
    name,
    make: () => ({ status: ({ shown }) => void Object.assign(shown, { [name]: true }) }),
  });
  const { parts } = partsOf([kindOf('a'), kindOf('b')]);
  parts.makeAll();
  const report = new NodeReport();
  parts.status(report);
  t.deepEqual(report.shown, { a: true, b: true });
});
