// Addresses of objects are those of the feature that shows them: nobody else writes them out.
import test from 'ava';
import { sourceFiles } from '../../../../helpers/console-sources.ts';

/** Beginning of the address of an object's page, and the feature whose page it is. */
const PAGES = { sites: 'sites', nodes: 'network', clusters: 'network', 'ip-lists': 'ip-lists' };

test('who names an object of another feature asks for its place', (t) => {
  const written = sourceFiles().flatMap(({ path, text }) =>
    [...text.matchAll(/`\/(sites|nodes|clusters|ip-lists)\/\$\{/g)]
      .map(([, page]) => PAGES[page as keyof typeof PAGES])
      .filter((feature) => !path.startsWith(`src/features/${feature}/`))
      .map(() => path),
  );
  t.deepEqual([...new Set(written)], []);
});
