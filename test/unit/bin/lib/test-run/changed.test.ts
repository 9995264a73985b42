import test from 'ava';
import { candidates, fitting, slicesOf } from '../../../../../bin/lib/test-run/changed.ts';
import { importsOf, reaching } from '../../../../../bin/lib/test-run/import-graph.ts';

const TESTS = [
  'test/unit/services/sites/launch.test.ts',
  'test/unit/runtime/env.test.ts',
  'test/integration/sites.test.ts',
  'test/integration/launch.test.ts',
  'test/integration/live.test.ts',
  'test/e2e/console-table.test.ts',
];
const SOURCES: Readonly<Record<string, string>> = {
  'test/integration/launch.test.ts': "await api.ok('GET', '/sites/1/launch-check')",
  'test/e2e/console-table.test.ts': "await rpc('sites.list')",
};
const IMPORTS = new Map([
  ['test/unit/services/sites/launch.test.ts', ['services/sites/launch.ts']],
  ['test/integration/live.test.ts', ['test/helpers/live-client.ts']],
  ['services/sites/sites.service.ts', ['services/sites/launch.ts']],
]);
const found = (...changed: string[]) => candidates(changed, IMPORTS, TESTS, (file) => SOURCES[file] ?? '');

test('a slice’s change runs the unit tests that import it, then what is named after it, then what calls it', (t) => {
  t.deepEqual(
    found('services/sites/launch.ts').map(({ file }) => file),
    [
      'test/unit/services/sites/launch.test.ts',
      'test/integration/sites.test.ts',
      'test/integration/launch.test.ts',
      'test/e2e/console-table.test.ts',
    ],
  );
});

test('a test’s change runs the test, a helper’s change those that import it', (t) => {
  t.deepEqual(found('test/integration/live.test.ts'), [{ file: 'test/integration/live.test.ts', nearness: 0 }]);
  t.deepEqual(found('test/helpers/live-client.ts'), [{ file: 'test/integration/live.test.ts', nearness: 0 }]);
  t.deepEqual(found('docs/bans.md'), []);
});

test('slices are named by services, resources of the contract, pages and tables', (t) => {
  const files = ['services/sites/a.ts', 'contract/resources/ip-lists.ts', 'console/src/features/audit/A.vue'];
  t.deepEqual(slicesOf([...files, 'models/bans/ban.ts', 'services/gen/features.ts', 'README.md']), [
    'audit',
    'bans',
    'ip-lists',
    'sites',
  ]);
});

test('what fits into the time is taken in order; a long file is left', (t) => {
  const items = [10, 200, 30, 60].map((seconds) => ({ seconds, cores: 1 }));
  const { taken, left } = fitting(items, (item) => item, 25, 2);
  t.deepEqual(
    taken.map(({ seconds }) => seconds),
    [10],
  );
  t.deepEqual(
    left.map(({ seconds }) => seconds),
    [200, 30, 60],
  );
});

test('imports are read as they are written, and followed backwards', (t) => {
  const source =
    "import a from './a.ts';\nexport { b } from '../b/b.ts';\nconst c = await import('./c.ts');\nimport 'node:fs';";
  t.deepEqual(importsOf('x/y/z.ts', source), ['x/y/a.ts', 'x/b/b.ts', 'x/y/c.ts']);
  const imports = new Map([
    ['a.ts', ['b.ts']],
    ['b.ts', ['c.ts']],
    ['c.ts', ['a.ts']],
  ]);
  t.deepEqual(
    [...reaching(imports, ['c.ts'])],
    [
      ['c.ts', 0],
      ['b.ts', 1],
      ['a.ts', 2],
    ],
  );
});
