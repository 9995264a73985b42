// Rules of the repository that no tool knows.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import test from 'ava';
import { ROOMS } from '../../bin/lib/rooms.ts';
import { root, SOURCE_FOLDERS } from '../../bin/lib/root.ts';

const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  .split('\0')
  .filter((file) => file !== '' && existsSync(join(root, file)));
const GENERATED =
  /^(proto\/gen|agents\/caddy\/gen|(contract|models|services)\/gen|docs\/(api|reference))\/|^package-lock\.json$|[.](binpb|sum)$/;
const written = files.filter((file) => !GENERATED.test(file));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

test('TypeScript files are named in kebab-case', (t) => {
  const names = files.filter((file) => /[.](ts|mjs)$/.test(file) && !GENERATED.test(file));
  t.deepEqual(
    names.filter((file) => !/^[a-z0-9]+([-.][a-z0-9]+)*[.](ts|mjs)$/.test(basename(file))),
    [],
  );
});

test('a unit test lies in the mirror of the folder it tests', (t) => {
  const tests = files.filter((file) => file.startsWith('test/unit/') && file.endsWith('.test.ts'));
  const orphans = tests.filter((file) => !existsSync(join(root, dirname(file.slice('test/unit/'.length)))));
  t.deepEqual(orphans, []);
});

test('no test is skipped, marked failing or run alone', (t) => {
  const marks = /\b(test|it)(\.serial)?\.(skip|only|todo|failing)\(|\bt\.Skip(Now|f)?\(/;
  const tests = written.filter((file) => /[.]test[.]ts$|_test[.]go$/.test(file));
  t.deepEqual(
    tests.filter((file) => file !== 'test/repo/repository.test.ts' && marks.test(read(file))),
    [],
  );
});

test('no file names a machine or a folder of one', (t) => {
  // Written so that this line does not match itself.
  const place = /\/wor[k]\/|\/roo[t]\/[a-z]|\/tmp\/bas[h]_/;
  t.deepEqual(
    written.filter((file) => place.test(read(file))),
    [],
  );
});

test('every service is in the README of services, with its role', (t) => {
  const services = files.flatMap((file) => /^services\/([^/]+)\/\1[.]service[.]ts$/.exec(file)?.[1] ?? []);
  const rows = [...read('services/README.md').matchAll(/^\| `([a-z-]+)` \| (\w+) \|/gm)];
  const named = rows.map(([, name, role]) => `${name} ${role}`);
  const role = (name: string) => /roles: [^=]+= \['(\w+)'/.exec(read(`services/${name}/${name}.service.ts`))?.[1];
  t.deepEqual(named.toSorted(), services.map((name) => `${name} ${role(name)}`).toSorted());
});

/** Who may call actions of other services, and why shared models do not do: the gateway has no tables; a check connects. */
const CALLERS = ['services/api-gateway/api-gateway.service.ts', 'services/overview/overview.service.ts'];

test('no service calls another one where shared models do', (t) => {
  const calls = /\b(broker|ctx|context)[!?]?\.(call|mcall|emit|broadcast)\b|\.waitForServices\b/;
  const sources = written.filter((file) => /^(services|mixins|models|pipeline)\/.*[.]ts$/.test(file));
  t.deepEqual(sources.filter((file) => calls.test(read(file))).sort(), CALLERS);
});

test('every relative link of a document leads somewhere', (t) => {
  const broken: string[] = [];
  for (const file of files.filter((name) => name.endsWith('.md'))) {
    for (const [, target = ''] of read(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (!existsSync(join(root, file, '..', target))) broken.push(`${file}: ${target}`);
    }
  }
  t.deepEqual(broken, []);
});

/** Packages of the Web UI that build it and are no part of it. */
const BUILDS_PAGES = /^vite$|^vue-tsc$|^unplugin-|plugin-/;

test('licence and notice are there', (t) => {
  t.regex(read('LICENSE'), /Apache License\s+Version 2\.0/);
  t.is((JSON.parse(read('package.json')) as { license: string }).license, 'Apache-2.0');
  const notice = read('NOTICE');
  const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
  const pages = JSON.parse(read('console/package.json')) as { devDependencies: Record<string, string> };
  const inPages = Object.keys(pages.devDependencies).filter((name) => !BUILDS_PAGES.test(name));
  const named: Record<string, string> = {
    pg: 'node-postgres',
    objection: 'Objection',
    typebox: 'TypeBox',
    otpauth: 'OTPAuth',
    'element-plus': 'Element Plus',
    'vue-i18n': 'Vue I18n',
    'vue-router': 'Vue Router',
  };
  for (const name of [...Object.keys(dependencies), ...inPages]) {
    const words = named[name] ?? (name.startsWith('@') ? name.slice(1).split('/')[0]! : name);
    const scope: Record<string, string> = {
      bufbuild: 'Buf Technologies',
      connectrpc: 'Connect for ECMAScript',
      peculiar: 'Peculiar',
      'element-plus': 'Element Plus',
    };
    t.true(notice.toLowerCase().includes((scope[words] ?? words).toLowerCase()), `NOTICE does not name ${name}`);
  }
});

interface LayeringRule {
  name: string;
  from: object;
  to: object;
}

/** They hold for all sources, and say nothing of a folder's place among the others. */
const GENERAL_RULES = ['no-circular', 'no-unresolvable'];

test('layering rules name every top folder with source, and so do the lists of such folders', (t) => {
  const { forbidden } = createRequire(import.meta.url)('../../.dependency-cruiser.cjs') as {
    forbidden: LayeringRule[];
  };
  const rules = JSON.stringify(
    forbidden.filter(({ name }) => !GENERAL_RULES.includes(name)).map(({ from, to }) => [from, to]),
  );
  const sources = files.filter((file) => file.includes('/') && /[.](ts|mts|cts|js|mjs|cjs|vue)$/.test(file));
  const folders = [...new Set(sources.map((file) => file.split('/', 1)[0]!))].sort();
  t.deepEqual(
    folders.filter((folder) => !new RegExp(`[\\^(|]${folder}[/)|]`).test(rules)),
    [],
    'no layering rule names these folders',
  );
  t.deepEqual([...SOURCE_FOLDERS].sort(), folders);
  t.deepEqual([...ROOMS].sort(), folders);
});
