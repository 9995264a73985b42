// What the documents state about codes, metrics, addresses and headings, held against what knows better.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { ENROLL_OPTIONS, STATUS_OPTIONS, SUPERVISE_OPTIONS } from '../../agents/edge/options.ts';
import { environmentName } from '../../agents/kit/options.ts';
import { consoleMetrics, edgeMetrics } from '../../bin/lib/metrics-catalog.ts';
import { root } from '../../bin/lib/root.ts';
import { ERRORS } from '../../contract/errors.ts';
import { VARIABLES } from '../../runtime/env-variables.ts';
import { DOCUMENTS, read } from '../helpers/documents.ts';

/** Cells of the rows below `<!-- table: name -->`. */
function table(file: string, name: string): string[][] {
  const rows = new RegExp(`<!-- table: ${name} -->\n((?:\\|.*\n)+)`).exec(read(file))?.[1];
  if (!rows) throw new Error(`${file} has no table ${name}`);
  const cells = (row: string) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  return rows.trimEnd().split('\n').slice(2).map(cells);
}
const numbers = (text: string) => (text.match(/[0-9]+/g) ?? []).map(Number);
const quoted = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, word]) => word!);
const REFUSALS = [
  .../export type RefusalReason =([^;]+);/
    .exec(read('services/node-channel/authenticator.ts'))![1]!
    .matchAll(/'([A-Z_]+)'/g),
].map(([, reason]) => reason!);

test('every metric has a threshold and an action', (t) => {
  for (const [name, metrics] of [
    ['console metrics', consoleMetrics()],
    ['node metrics', edgeMetrics()],
  ] as const) {
    const told = table('docs/monitoring.md', name).flatMap(([cell]) =>
      quoted(cell!).map((text) => text.split('{')[0]!),
    );
    const known = metrics.map((each) => each.name);
    t.deepEqual(
      known.filter((each) => !told.includes(each)),
      [],
      name,
    );
    t.deepEqual(
      told.filter((each) => !known.includes(each)),
      [],
      name,
    );
  }
});

test('every reason for which a node is refused is explained', (t) => {
  const told = table('docs/troubleshooting.md', 'refusals').flatMap(([reasons]) => quoted(reasons!));
  t.deepEqual(told.toSorted(), REFUSALS.toSorted());
});

test('every answer that the edge makes itself is explained, with its statuses', (t) => {
  const codes = new Map(
    [...read('agents/caddy/pages/codes.go').matchAll(/^\t([A-Z]\w+) += "([a-z-]+)"$/gm)].map(([, name, code]) => [
      name!,
      code!,
    ]),
  );
  const rows = table('docs/troubleshooting.md', 'edge errors');
  const told = new Map(
    rows.flatMap(([names, statuses]) => quoted(names!).map((code) => [code, numbers(statuses!)] as const)),
  );
  t.deepEqual([...told.keys()].sort(), [...codes.values()].sort());
  const pages = /range map\[string\]\[\]int\{\n([\s\S]*?)\n\t\}/.exec(read('agents/caddy/pages/page.go'))![1]!;
  for (const [, name, statuses] of pages.matchAll(/(\w+): \{([0-9, ]+)\}/g)) {
    const code = codes.get(name!)!;
    // Its page has the status of the origin, which can be any.
    if (code !== 'origin-error') t.deepEqual(told.get(code), numbers(statuses!), code);
  }
});

test('every code, variable and option that a document names exists', (t) => {
  const options = [...ENROLL_OPTIONS, ...SUPERVISE_OPTIONS, ...STATUS_OPTIONS];
  const known = new Set<string>([
    ...Object.keys(ERRORS),
    ...REFUSALS,
    ...VARIABLES.map(({ name }) => name),
    ...options.map(({ name }) => environmentName(name)),
    // Of others: capabilities of Linux, and a variable of the development server of the Web UI.
    'CAP_NET_ADMIN',
    'CAP_NET_BIND_SERVICE',
    'CAP_SETPCAP',
    'CONSOLE_URL',
    // Of tests: for how long the database is stopped, how often each process is killed, and whether pictures are kept.
    'STALL_SECONDS',
    'COUNT_KILLS',
    'TEST_PICTURES',
    // What the supervisor tells Caddy.
    /Variable = "(SVC_\w+)"/.exec(read('agents/caddy/internal/confine/confine.go'))![1]!,
    /variable = "(SVC_\w+)"/.exec(read('agents/caddy/internal/lifesign/lifesign.go'))![1]!,
  ]);
  for (const file of DOCUMENTS) {
    for (const [, word] of read(file).matchAll(/`([A-Z]+(?:_[A-Z]+)+)(?:=[^`]*)?`/g))
      t.true(known.has(word!), `${file}: ${word}`);
  }
});

test('every endpoint that a document names exists', (t) => {
  const { paths } = JSON.parse(read('docs/api/openapi.json')) as { paths: Record<string, Record<string, unknown>> };
  const shape = (path: string) => path.replace(/^\/api\/v1/, '').replace(/\{[^}]+\}/g, '{}');
  const known = new Set(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${shape(path)}`),
    ),
  );
  for (const file of DOCUMENTS) {
    for (const [, method, path] of read(file).matchAll(/`(GET|POST|PUT|PATCH|DELETE) (\/[^`?\s]+)/g)) {
      if (!path!.startsWith('/rpc/')) t.true(known.has(`${method} ${shape(path!)}`), `${file}: ${method} ${path}`);
    }
  }
});

test('the page of the WAF names the engine and the rule set that the edge is built with', (t) => {
  const modules = read('agents/caddy/go.mod');
  const version = (module: string) => new RegExp(`${module}/v\\d+ v(\\d+[.]\\d+)`).exec(modules)![1]!;
  const page = read('docs/waf.md');
  t.true(page.includes(`[Coraza](https://coraza.io) ${version('corazawaf/coraza')}`));
  t.true(page.includes(`OWASP Core Rule Set ${version('corazawaf/coraza-coreruleset')}`));
});

test('every link to a heading of a document leads to one', (t) => {
  const anchor = (heading: string) =>
    heading
      .replaceAll(/[`*]/g, '')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
  const anchors = (file: string) =>
    new Set([...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchor(heading!)));
  for (const file of DOCUMENTS) {
    for (const [, target, fragment] of read(file).matchAll(/\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g)) {
      const to = target === '' ? file : join(file, '..', target!);
      t.true(anchors(to).has(fragment!), `${file}: ${target}#${fragment}`);
    }
  }
});

test('the README fits on two screens, and its picture is small', (t) => {
  t.true(read('README.md').split('\n').length <= 150);
  for (const name of readdirSync(join(root, 'docs/images')))
    t.true(statSync(join(root, 'docs/images', name)).size <= 120 * 1024, name);
});

test('the index of the documentation names every page', (t) => {
  const index = read('docs/README.md');
  const pages = DOCUMENTS.filter((file) => /^docs\/[a-z-]+[.]md$/.test(file)).map((file) => file.slice('docs/'.length));
  t.deepEqual(
    pages.filter((page) => !index.includes(`](${page})`)),
    [],
  );
});
