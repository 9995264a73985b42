import test from 'ava';
import { judgeBatch, judgeDelta, type Verdict } from '../../../../agents/edge/config/delta-rules.ts';
import { Track } from '../../../../proto/gen/svc/node/v1/config_pb.js';

const mine = { epoch: 7n, track: Track.STABLE, revision: 10n };

for (const [title, base, revision, expected] of [
  ['the next one', 10n, 11n, 'apply'],
  ['several at once', 10n, 15n, 'apply'],
  ['one that starts before mine and ends after it', 5n, 12n, 'apply'],
  ['everything since the beginning', 0n, 11n, 'apply'],
  ['the same once more', 9n, 10n, 'ignore'],
  ['an old one', 3n, 4n, 'ignore'],
  ['one after a gap', 11n, 12n, 'pull'],
  ['one far ahead', 100n, 101n, 'pull'],
  ['an empty one at mine', 10n, 10n, 'ignore'],
] as [string, bigint, bigint, Verdict][]) {
  test(`a delta that is ${title}: ${expected}`, (t) => {
    t.is(
      judgeDelta(mine, { epoch: 7n, track: Track.STABLE, baseTrack: Track.STABLE, base, revision, truncated: false }),
      expected,
    );
  });
  test(`a batch that is ${title}: ${expected}`, (t) => {
    t.is(judgeBatch({ epoch: 7n, sequence: 10n }, { epoch: 7n, from: base, to: revision, truncated: false }), expected);
  });
}

test('another epoch is always pulled, whatever the numbers', (t) => {
  for (const epoch of [0n, 6n, 8n]) {
    for (const [base, revision] of [
      [10n, 11n],
      [0n, 5n],
      [10n, 10n],
      [20n, 21n],
    ] as const) {
      t.is(
        judgeDelta(mine, { epoch, track: Track.STABLE, baseTrack: Track.STABLE, base, revision, truncated: false }),
        'pull',
      );
      t.is(judgeBatch({ epoch: 7n, sequence: 10n }, { epoch, from: base, to: revision, truncated: false }), 'pull');
    }
  }
});

const onto = (track: Track, baseTrack: Track, base: bigint, revision: bigint, truncated = false) =>
  judgeDelta(mine, { epoch: 7n, track, baseTrack, base, revision, truncated });

test('a delta of another track is pulled, one that leads to it from where the node is applies', (t) => {
  t.is(onto(Track.CANARY, Track.CANARY, 10n, 11n), 'pull');
  t.is(onto(Track.CANARY, Track.UNSPECIFIED, 10n, 11n), 'pull');
  t.is(onto(Track.CANARY, Track.STABLE, 10n, 11n), 'apply');
  t.is(onto(Track.CANARY, Track.STABLE, 10n, 10n), 'apply', 'a number that both tracks reached');
  t.is(onto(Track.CANARY, Track.STABLE, 9n, 11n), 'pull', 'it says what differs from 9, not from 10');
  t.is(onto(Track.CANARY, Track.STABLE, 10n, 11n, true), 'pull');
});

test('a delta that leads to the own track from another is pulled when it is news', (t) => {
  t.is(onto(Track.STABLE, Track.CANARY, 9n, 11n), 'pull');
  t.is(onto(Track.STABLE, Track.CANARY, 9n, 10n), 'ignore');
});

test('a truncated one is pulled when it is news and ignored when it is not', (t) => {
  t.is(
    judgeDelta(mine, {
      epoch: 7n,
      track: Track.STABLE,
      baseTrack: Track.STABLE,
      base: 10n,
      revision: 11n,
      truncated: true,
    }),
    'pull',
  );
  t.is(
    judgeDelta(mine, {
      epoch: 7n,
      track: Track.STABLE,
      baseTrack: Track.STABLE,
      base: 9n,
      revision: 10n,
      truncated: true,
    }),
    'ignore',
  );
  t.is(judgeBatch({ epoch: 7n, sequence: 10n }, { epoch: 7n, from: 10n, to: 11n, truncated: true }), 'pull');
});
