// Adding a resource touches its own folders: a small made-up one (test/made-up, laid out as it lies in the tree) is added
// to a copy of the tree and works there, and what it had to change of existing files is counted.
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { newResource } from '../../bin/lib/new-resource.ts';
import { DECLARATIONS, REGISTERS } from '../../bin/lib/registers.ts';
import { root } from '../../bin/lib/root.ts';
import { createTestDatabase, redisPrefix, servers } from '../helpers/servers.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const MADE_UP = join(root, 'test', 'made-up');
/** Beside the resource, and not written by `npm run new`: a feed, and kinds of a task for nodes and of a long job. */
const MADE_UP_BESIDE = ['made-up-feed', 'made-up-work'].map((folder) => join(root, 'test', folder));
/** What the copy does not need; nothing of it belongs to a resource. */
const LEFT_OUT =
  /^(agents\/caddy|bench|docs|k8s|test\/(made-up|made-up-feed|made-up-work|unit|e2e|integration|repo))\//;
/** Written by `npm run generate`. */
const GENERATED = new Set(['docs/api/openapi.json', ...[...REGISTERS, ...DECLARATIONS].map(({ file }) => file)]);
/** Existing files that a new resource may have to change. */
const MOST_CHANGED = 5;
/** Ten seconds by itself; a machine that does ten other things must not make it fail. */
const TIMEOUT_MS = 600_000;

interface Report {
  operation: unknown;
  models: string[];
  migrated: string[];
  created: { id: string; text: string };
  /** Entries of the kind, and the revisions they live from and to, after the creation and after the deletion. */
  live: { id: string; body: string; ended: boolean }[][];
  missing: { status: number; code: string };
  attention: string[];
  jobs: string[];
  siteFeature: unknown;
  page: { name: string; path: string; navigation: string[] };
  words: Record<string, Record<string, string | null>>;
  /** What reached an agent by the feed, and the feed's metrics. */
  seen: string[];
  feedMetrics: string[];
  /** Output of its task on a node, and the code of one that failed. */
  task: string;
  taskCode: string;
  /** Its long job, and the job's file. */
  job: { kind: string; state: string; fileName: string };
  jobFile: string;
  surface: string[];
}

test('a made-up resource works in a copy of the tree, and changes at most five existing files', async (t) => {
  t.timeout(TIMEOUT_MS);
  const tree = temporaryFolder(t);
  copyTree(tree);
  const before = contents(tree);
  addMadeUp(tree);
  const report = await runInside(tree);

  const changed = [...before].filter(([file, text]) => readFileSync(join(tree, file), 'utf8') !== text);
  const names = changed.map(([file]) => file);
  t.true(names.filter((file) => !GENERATED.has(file)).length <= MOST_CHANGED, names.join(', '));
  t.true(
    names.some((file) => GENERATED.has(file)),
    'the registers were written again',
  );

  // Contract: its operation and its object are in the document.
  t.like(report.operation, { operationId: 'greetings.create', tags: ['greetings'] });
  t.true(report.models.includes('Greeting'));
  // Migration, model, entry.
  t.true(report.migrated.some((name) => /^[0-9]{4}-greetings$/.test(name)));
  t.is(report.created.text, 'go away');
  const { id } = report.created;
  t.deepEqual(report.live, [[{ id, body: 'go away', ended: false }], [{ id, body: 'go away', ended: true }]]);
  t.deepEqual(report.missing, { status: 404, code: 'GREETING_NOT_FOUND' });
  // What it adds to lists of the whole console.
  t.true(report.attention.includes('greetings_waiting'));
  t.true(report.jobs.includes('sweep-greetings'));
  t.deepEqual(report.siteFeature, { available: true, reason: null });
  // Its page and its words.
  t.deepEqual(report.page, { name: 'greetings', path: '/greetings', navigation: ['/greetings'] });
  for (const [language, words] of Object.entries(report.words))
    for (const [key, text] of Object.entries(words)) t.truthy(text, `${language} ${key}`);
  // Its feed: pushed; after a cut repaired from the journal's place; fetched anew without a journal.
  const first = ['replaced', 'go away', 'pushed'];
  t.deepEqual(report.seen, [...first, ...first, 'missed', 'replaced', 'kept']);
  for (const name of ['svc_fanout_batches_total', 'svc_feed_nodes_behind', 'svc_feed_repairs_total'])
    t.true(
      report.feedMetrics.some((line) => line.startsWith(`${name}{feed="waves"} `)),
      name,
    );
  // Its kinds of work: a node does the task, the console the job.
  t.is(report.task, 'hello, said the node');
  t.is(report.taskCode, 'nothing_to_say');
  t.like(report.job, { kind: 'echo', state: 'done', fileName: 'echo.csv' });
  t.is(report.jobFile, 'hello 1\nhello 2\nhello 3\n');
  // What tests of the whole surface need to know.
  t.true(report.surface.includes('greetings.create'));
});

/** Files of the repository, as they are in the working tree. */
function copyTree(tree: string): void {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 24,
  });
  for (const file of listed.split('\0')) {
    if (file === '' || LEFT_OUT.test(file) || !existsSync(join(root, file))) continue;
    if (!statSync(join(root, file)).isFile()) continue;
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    cpSync(join(root, file), join(tree, file));
  }
  mkdirSync(join(tree, 'docs/api'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(tree, 'node_modules'));
}

function contents(tree: string): Map<string, string> {
  const names = readdirSync(tree, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(files.map((file) => [file.slice(tree.length + 1), readFileSync(file, 'utf8')]));
}

/** The resource's own files, as `npm run new` writes them, and what tries them. */
function addMadeUp(tree: string): void {
  newResource(tree, 'greetings');
  cpSync(join(MADE_UP, 'try-it.ts.txt'), join(tree, 'try-it.ts'));
  for (const folder of MADE_UP_BESIDE) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      const target = join(tree, path.slice(folder.length + 1).replace(/[.]txt$/, ''));
      mkdirSync(dirname(target), { recursive: true });
      cpSync(path, target);
    }
  }
}

/** Runs test/made-up/try-it.ts of the copy as a process of its own: modules of this one stay as they are. */
async function runInside(tree: string): Promise<Report> {
  const database = await createTestDatabase();
  try {
    const { redisUrl } = await servers();
    const result = join(tree, 'report.json');
    const child = spawn(process.execPath, [join(tree, 'try-it.ts'), result], {
      cwd: tree,
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: database.url,
        REDIS_URL: redisUrl,
        SVC_REDIS_PREFIX: redisPrefix(),
        SVC_MASTER_KEY: randomBytes(32).toString('base64'),
        SVC_PUBLIC_URL: 'http://localhost:3000',
        HOST: '127.0.0.1',
        PORT: '0',
        NODE_API_HOST: '127.0.0.1',
        NODE_API_PORT: '0',
        METRICS_PORT: '0',
        LOG_LEVEL: 'warn',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: TIMEOUT_MS - 10_000,
      killSignal: 'SIGKILL',
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const code = await new Promise<number | null>((done, failed) => {
      child.on('error', failed);
      child.on('close', done);
    });
    if (code !== 0) throw new Error(`the copy of the tree ended with ${code}:\n${output.slice(-4000)}`);
    return JSON.parse(readFileSync(result, 'utf8')) as Report;
  } finally {
    await database.drop();
  }
}
