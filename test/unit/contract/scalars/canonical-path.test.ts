// The edge runs the same vectors: agents/caddy/exchange/path_test.go.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { root } from '../../../../bin/lib/root.ts';
import { canonicalPath } from '../../../../contract/scalars/canonical-path.ts';

const file = join(root, 'test/vectors/canonical-paths.json');
const { rows } = JSON.parse(readFileSync(file, 'utf8')) as { rows: { given: string; canonical: string }[] };

test('paths get the form of the vectors', (t) => {
  t.true(rows.length >= 30);
  for (const { given, canonical } of rows) t.is(canonicalPath(given), canonical, JSON.stringify(given));
});

test('the form is reached at once and has no dot segment and no repeated slash', (t) => {
  const pieces = fc.constantFrom('/', '.', '..', 'a', '...', 'é', '//', '/./', '/../');
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const path = canonicalPath(parts.join(''));
      t.is(canonicalPath(path), path);
      t.regex(path, /^\/(?!.*\/\/)/);
      t.false(path.split('/').some((segment) => segment === '.' || segment === '..'));
    }),
  );
});
