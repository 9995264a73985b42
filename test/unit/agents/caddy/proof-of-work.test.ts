// The scripts that visitors' browsers search proofs of work with, against the digests of Node.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { root } from '../../../helpers/documents.ts';

type Search = (text: string, bits: number) => (from: number, count: number) => string;

const assets = join(root, 'agents/caddy/features/challenge/assets');
const source = ['sha256.js', 'search.js', 'lanes.js'].map((name) => readFileSync(join(assets, name), 'utf8')).join('');
const scripts = new Function(`${source}; return { search, lanes };`)() as Record<'search' | 'lanes', Search>;

function zeroBits(text: string): number {
  const digest = createHash('sha256').update(text).digest();
  const at = digest.findIndex((byte) => byte !== 0);
  return at * 8 + Math.clz32(digest[at]!) - 24;
}

for (const [name, search] of Object.entries(scripts)) {
  test(`${name} finds answers for texts of every length of a last block`, (t) => {
    for (let length = 200; length < 264; length++) {
      const text = `k1.${'x'.repeat(length)}`;
      const find = search(text, 8);
      let from = 0;
      let answer = find(from, 256);
      while (answer === '') {
        from += 256;
        answer = find(from, 256);
      }
      t.regex(answer, /^\d{9,16}$/, `${length}`);
      t.true(zeroBits(`${text}:${answer}`) >= 8, `${length}: ${answer}`);
    }
  });
}

test('four numbers at a time: each is tried once, also where their first digits change', (t) => {
  const text = `k1.${'y'.repeat(211)}`;
  for (const from of [0, 36, 396, 39_996, 399_999_600, 400_000_000, 799_999_600]) {
    const answer = scripts.lanes(text, 3)(from, 400);
    t.true(zeroBits(`${text}:${answer}`) >= 3, `${from}: ${answer}`);
    // The first digit is of the lane, four more from four hundred million on; the others count rounds.
    const round = Number(answer.slice(-8)) - ((from / 4) % 1e8);
    t.true(round >= 0 && round < 100, `${from}: ${answer}`);
    t.is(Math.floor(Number(answer.slice(-9, -8)) / 4), Math.floor(from / 400_000_000), `${from}: ${answer}`);
  }
  const tried = new Set<string>();
  const find = scripts.lanes(text, 4);
  for (let from = 0; from < 4000; from += 4) {
    const answer = find(from, 4);
    if (answer === '') continue;
    t.true(zeroBits(`${text}:${answer}`) >= 4);
    tried.add(answer);
  }
  // One of sixteen numbers is an answer; of each four at most one is told.
  t.true(tried.size > 150 && tried.size < 320, `${tried.size}`);
});
