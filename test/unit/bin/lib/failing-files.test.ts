import test from 'ava';
import { failingFiles } from '../../../../bin/lib/failing-files.ts';

const FILES = ['test/e2e/bans.test.ts', 'test/e2e/console/bans.test.ts', 'test/e2e/demo.test.ts'];

const TABLE: { name: string; files?: string[]; failures: string[]; expected: string[] }[] = [
  { name: 'no failure names no file', failures: [], expected: [] },
  {
    name: 'a title begins with what is left of the path',
    failures: ['not ok 3 - demo › second start\n  ---\n    name: AssertionError'],
    expected: ['test/e2e/demo.test.ts'],
  },
  {
    name: 'the longest name wins',
    failures: ['not ok 1 - console › bans › lift', 'not ok 9 - bans › lift'],
    expected: ['test/e2e/console/bans.test.ts', 'test/e2e/bans.test.ts'],
  },
  {
    name: 'two failures of a file name it once',
    failures: ['not ok 1 - demo › a', 'not ok 2 - demo › b'],
    expected: ['test/e2e/demo.test.ts'],
  },
  {
    name: 'a file that crashed is named by its path',
    failures: ['not ok 4 - test/e2e/demo.test.ts exited with a non-zero exit code: 1'],
    expected: ['test/e2e/demo.test.ts'],
  },
  {
    name: 'the only file stands in no title',
    files: ['test/e2e/demo.test.ts'],
    failures: ['not ok 1 - second start'],
    expected: ['test/e2e/demo.test.ts'],
  },
  {
    name: 'one failure of no known file leaves nothing to run again',
    failures: ['not ok 1 - demo › a', 'not ok 2 - other › x'],
    expected: [],
  },
];

for (const { name, files = FILES, failures, expected } of TABLE)
  test(name, (t) => t.deepEqual(failingFiles(files, failures), expected));
