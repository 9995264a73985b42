// The archive is one that tar reads, and the same for the same content.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { type Entry, tarball } from '../../../../../bin/lib/node-package/tarball.ts';

async function bytes(entries: readonly Entry[]): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of tarball(entries)) parts.push(part);
  return Buffer.concat(parts);
}

const list = (archive: Buffer) =>
  execFileSync('tar', ['--numeric-owner', '--full-time', '-tvf', '-'], {
    input: archive,
    encoding: 'utf8',
    env: { TZ: 'UTC' },
  })
    .trimEnd()
    .split('\n')
    .map((line) => line.replaceAll(/ +/g, ' '));

test('names in order, folders before what is in them, modes kept, nobody as owner, one time', async (t) => {
  const archive = await bytes([
    { name: 'top/bin/run', content: 'run\n', executable: true },
    { name: 'top/a', content: '' },
    { name: 'top/bin/also', content: 'x'.repeat(512) },
  ]);
  t.deepEqual(list(archive), [
    'drwxr-xr-x 0/0 0 2000-01-01 00:00:00 top/',
    'drwxr-xr-x 0/0 0 2000-01-01 00:00:00 top/bin/',
    '-rw-r--r-- 0/0 0 2000-01-01 00:00:00 top/a',
    '-rw-r--r-- 0/0 512 2000-01-01 00:00:00 top/bin/also',
    '-rwxr-xr-x 0/0 4 2000-01-01 00:00:00 top/bin/run',
  ]);
  const read = (name: string) => execFileSync('tar', ['-xOf', '-', name], { input: archive, encoding: 'utf8' });
  t.is(read('top/bin/run'), 'run\n');
  t.is(read('top/bin/also'), 'x'.repeat(512));
});

test('files on disk give the same bytes whenever they were written, in whichever order they are named', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tarball-'));
  try {
    const file = join(folder, 'file');
    const entries: Entry[] = [
      { name: 'a/file', content: { file } },
      { name: 'a/text', content: 'text' },
    ];
    writeFileSync(file, 'é'.repeat(70_000));
    const first = await bytes(entries);
    utimesSync(file, 1, 1);
    t.true((await bytes(entries.toReversed())).equals(first));
    t.is(execFileSync('tar', ['-xOf', '-', 'a/file'], { input: first, encoding: 'utf8' }), 'é'.repeat(70_000));
    writeFileSync(file, '');
    t.is(execFileSync('tar', ['-xOf', '-', 'a/file'], { input: await bytes(entries), encoding: 'utf8' }), '');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a name that the format has no room for is refused', async (t) => {
  await t.throwsAsync(bytes([{ name: 'n'.repeat(101), content: '' }]), { instanceOf: RangeError });
});
