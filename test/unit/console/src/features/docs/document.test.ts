import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import {
  type DocsElement,
  type DocsNode,
  parseDocument,
} from '../../../../../../console/src/features/docs/document.ts';
import { docsAddress, linkTarget } from '../../../../../../console/src/features/docs/links.ts';
import { sourceFiles } from '../../../../../helpers/console-sources.ts';
import { read, root } from '../../../../../helpers/documents.ts';

const named = (folder: string) => readdirSync(join(root, 'docs', folder)).map((name) => join(folder, name));
const pages = new Map(
  [...named(''), ...named('reference')]
    .filter((file) => file.endsWith('.md'))
    .map((file) => [file.slice(0, -'.md'.length), parseDocument(read(`docs/${file}`))]),
);
/** Addresses of pages and of their headings. */
const places = new Set(
  [...pages].flatMap(([page, { anchors }]) => {
    const address = docsAddress(page);
    return [address, ...anchors.map((anchor) => `${address}#${anchor}`)];
  }),
);

function elements(nodes: readonly DocsNode[]): DocsElement[] {
  return nodes.flatMap((node) => (typeof node === 'string' ? [] : [node, ...elements(node.children)]));
}

const text = (nodes: readonly DocsNode[]): string =>
  nodes.map((node) => (typeof node === 'string' ? node : text(node.children))).join('');

test('headings get the anchors of GitHub, a repeated one with a number', (t) => {
  const source = '# The page\n\n## Wildcards (DNS-01)\n\n## `svc_x` & more\n\n## Ports\n\n### Ports\n\n## 证书 申请\n';
  const { title, anchors, body } = parseDocument(source);
  t.is(title, 'The page');
  t.deepEqual(anchors, ['the-page', 'wildcards-dns-01', 'svc_x--more', 'ports', 'ports-1', '证书-申请']);
  t.deepEqual(
    elements(body).flatMap(({ tag, attributes }) => (attributes.id ? [`${tag} ${attributes.id}`] : [])),
    ['h2 docs-wildcards-dns-01', 'h2 docs-svc_x--more', 'h2 docs-ports', 'h3 docs-ports-1', 'h2 docs-证书-申请'],
  );
});

test('HTML in a document is text, and comments for tests are not shown', (t) => {
  const { body } = parseDocument(
    '# A\n\n<!-- run: ban -->\n\n<img src=x onerror="alert(1)">\n\n[b](javascript:alert(1))\n',
  );
  t.deepEqual([...new Set(elements(body).map(({ tag }) => tag))], ['p']);
  t.is(text(body), '<img src=x onerror="alert(1)">[b](javascript:alert(1))');
});

test('every page of the docs has a title, and its links lead to pages and headings that exist', (t) => {
  t.true(pages.size > 20);
  for (const [page, { title, body }] of pages) {
    t.not(title, '', page);
    t.notRegex(text(body), /<!--/, page);
    for (const { attributes } of elements(body).filter(({ tag }) => tag === 'a')) {
      const target = linkTarget(page, String(attributes.href));
      if (target.kind === 'page') t.true(places.has(target.to), `${page}: ${target.to}`);
    }
  }
});

test('every page of the Web UI names docs that exist', (t) => {
  const declared = sourceFiles()
    .filter(({ path }) => path.endsWith('/feature.ts'))
    .flatMap(({ path, text: source }) =>
      [...source.matchAll(/\bdocs: '([^']+)'/g)].map(([, place]) => ({ path, place: place! })),
    );
  t.true(declared.length > 20);
  for (const { path, place } of declared) t.true(places.has(`/docs/${place}`), `${path}: ${place}`);
});
