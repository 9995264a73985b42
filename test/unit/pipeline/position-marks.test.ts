import { randomBytes } from 'node:crypto';
import test from 'ava';
import { PositionMarks } from '../../../pipeline/position-marks.ts';

const marks = new PositionMarks(randomBytes(32));
const config = { epoch: 1_700_000_000_000n, track: 1, revision: 7n, setHash: randomBytes(32) };
const bans = { epoch: 1_700_000_000_000n, sequence: 7n };
const configMark = marks.config('cluster', config);
const bansMark = marks.feed('bans', 'cluster', bans);

test('a mark proves the place that it was given for', (t) => {
  t.true(marks.provesConfig('cluster', { ...config, mark: configMark }));
  t.true(marks.provesFeed('bans', 'cluster', { ...bans, mark: bansMark }));
  t.is(configMark.length, 16);
});

for (const [what, place] of Object.entries({
  'a later revision': { ...config, revision: 8n },
  'an earlier revision': { ...config, revision: 6n },
  'another epoch': { ...config, epoch: config.epoch + 1n },
  'another track': { ...config, track: 2 },
  'another set': { ...config, setHash: randomBytes(32) },
  'no set': { ...config, setHash: new Uint8Array() },
  'a set of any length': { ...config, setHash: new Uint8Array(1_000_000) },
})) {
  test(`a mark of the configuration does not prove ${what}`, (t) => {
    t.false(marks.provesConfig('cluster', { ...place, mark: configMark }));
  });
}

for (const [what, place] of Object.entries({
  'a later number': { ...bans, sequence: 8n },
  'another epoch': { ...bans, epoch: bans.epoch + 1n },
})) {
  test(`a mark of bans does not prove ${what}`, (t) => {
    t.false(marks.provesFeed('bans', 'cluster', { ...place, mark: bansMark }));
  });
}

test('a mark proves nothing for another cluster, nor by another key', (t) => {
  t.false(marks.provesConfig('other', { ...config, mark: configMark }));
  t.false(marks.provesFeed('bans', 'other', { ...bans, mark: bansMark }));
  const stranger = new PositionMarks(randomBytes(32));
  t.false(marks.provesConfig('cluster', { ...config, mark: stranger.config('cluster', config) }));
  t.false(marks.provesFeed('bans', 'cluster', { ...bans, mark: stranger.feed('bans', 'cluster', bans) }));
});

test('a mark of one feed does not prove a place in another', (t) => {
  t.false(marks.provesFeed('purge', 'cluster', { ...bans, mark: bansMark }));
});

test('what is no mark proves nothing', (t) => {
  for (const mark of [
    new Uint8Array(),
    new Uint8Array(16),
    configMark.subarray(0, 15),
    Buffer.concat([configMark, configMark]),
  ]) {
    t.false(marks.provesConfig('cluster', { ...config, mark }));
  }
});
