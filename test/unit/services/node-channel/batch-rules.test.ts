// Which batches of a node count: against random histories of sending, losing, dropping and restoring.
import test from 'ava';
import fc from 'fast-check';
import { type BatchCursor, judgeBatch, type Span, skippedSpan } from '../../../../services/node-channel/batch-rules.ts';

test('a batch that was stored is known, the next one counts, a later one only when nothing before it is held', (t) => {
  const at = { sequence: 5n };
  const rows: [sequence: bigint, firstHeld: bigint, verdict: string][] = [
    [1n, 0n, 'known'],
    [5n, 5n, 'known'],
    [6n, 6n, 'next'],
    [6n, 3n, 'next'],
    [6n, 0n, 'next'],
    [8n, 6n, 'early'],
    [8n, 7n, 'early'],
    [8n, 8n, 'next_after_gap'],
    [8n, 9n, 'next_after_gap'],
    [8n, 0n, 'next'],
  ];
  for (const [sequence, firstHeld, verdict] of rows) t.is(judgeBatch(at, { sequence, firstHeld }), verdict as never);
});

test('skipped batches are a gap from what the console has for sure to where the next one begins', (t) => {
  const cursor = { sequence: 1n, watermark: 1000, storedAt: 2000 };
  t.deepEqual(skippedSpan(cursor, 5000), { from: 1000, to: 5000 });
  t.deepEqual(skippedSpan({ ...cursor, watermark: null }, 5000), { from: 2000, to: 5000 });
  t.deepEqual(skippedSpan({ ...cursor, watermark: null, storedAt: null }, 5000), { from: 5000, to: 5000 });
  // The node counted again for a time before.
  t.deepEqual(skippedSpan(cursor, 500), { from: 500, to: 500 });
});

interface Batch {
  sequence: bigint;
  at: number;
}

/** A console that follows the rules, with dumps that it may be restored from. */
class Console {
  cursor: BatchCursor = { sequence: 0n, watermark: null, storedAt: null };
  stored: Batch[] = [];
  gaps: Span[] = [];

  take(batch: Batch, firstHeld: bigint): bigint {
    const verdict = judgeBatch(this.cursor, { sequence: batch.sequence, firstHeld });
    if (verdict === 'next_after_gap') this.gaps.push(skippedSpan(this.cursor, batch.at));
    if (verdict === 'next' || verdict === 'next_after_gap') {
      this.stored.push(batch);
      this.cursor = { sequence: batch.sequence, watermark: batch.at, storedAt: batch.at };
    }
    return this.cursor.sequence;
  }

  dump(): Console {
    return Object.assign(new Console(), { cursor: this.cursor, stored: [...this.stored], gaps: [...this.gaps] });
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant('count' as const) },
  { weight: 4, arbitrary: fc.constant('send' as const) },
  { weight: 2, arbitrary: fc.constant('send, and the answer is lost' as const) },
  { weight: 1, arbitrary: fc.constant('send the newest' as const) },
  { weight: 1, arbitrary: fc.constant('drop the oldest' as const) },
  { weight: 1, arbitrary: fc.constant('dump' as const) },
  { weight: 1, arbitrary: fc.constant('restore' as const) },
);

test('whatever comes late, twice, out of order or never: a batch counts once or its time is in a gap', (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let console = new Console();
      let dump = console.dump();
      let spool: Batch[] = [];
      const made: Batch[] = [];
      const send = (batch: Batch | undefined, answered: boolean) => {
        if (!batch) return;
        const acknowledged = console.take(batch, spool[0]!.sequence);
        if (answered) spool = spool.filter(({ sequence }) => sequence > acknowledged);
      };
      for (const what of [...steps, 'count' as const]) {
        if (what === 'count') {
          const batch = { sequence: BigInt(made.length + 1), at: (made.length + 1) * 60 };
          made.push(batch);
          spool.push(batch);
        } else if (what === 'send') send(spool[0], true);
        else if (what === 'send the newest') send(spool.at(-1), true);
        else if (what === 'drop the oldest') spool.shift();
        else if (what === 'dump') dump = console.dump();
        else if (what === 'restore') console = dump.dump();
        else send(spool[0], false);
      }
      for (let turn = 0; spool.length > 0 && turn < 100; turn++) send(spool[0], true);
      const stored = console.stored.map(({ sequence }) => sequence);
      const first = stored[0]!;
      return (
        spool.length === 0 &&
        new Set(stored).size === stored.length &&
        made.every(({ sequence, at }) => {
          if (stored.includes(sequence)) return true;
          // Before the first there is nothing to tell a gap's begin by.
          if (sequence < first) return console.gaps.length > 0;
          return console.gaps.some(({ from, to }) => from < at && at <= to);
        })
      );
    }),
    { numRuns: 500 },
  );
  t.pass();
});
