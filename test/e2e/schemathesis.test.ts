// The whole OpenAPI document, tried by schemathesis with access keys against a running console.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'ava';
import { ERRORS } from '../../contract/errors.ts';
import { PROCEDURES } from '../../contract/index.ts';
import { startTestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';
import { ensureSchemathesis, schemathesisReport } from '../helpers/schemathesis.ts';
import { makeFixtures, NEVER_2XX, type PoolKey } from '../schemathesis/fixtures.ts';

const KEYS = 60;
/** Bounds a hang. A time given to schemathesis itself would be used up, and a slow machine would try less. */
const BUDGET_SECONDS = 1200;
/** Random calls of each operation, beside its examples and the edges of its fields. */
const EXAMPLES = Number(process.env.EXAMPLES ?? 3);
const SEED = 20_261_121;
/** What a busy console answers, with the time after which to try again. */
const BUSY = 503;
// Server errors are judged below, with the rare answer of a busy console apart.
const CHECKS = [
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];
const RARE_SHARE = 0.001;

const folder = join(import.meta.dirname, '..', 'schemathesis');

test.serial('the document is OpenAPI 3.1 by the schema of its specification', async (t) => {
  const command = await ensureSchemathesis();
  const document = join(import.meta.dirname, '..', '..', 'docs', 'api', 'openapi.json');
  const { code, output } = await run(
    join(dirname(command), 'openapi-spec-validator'),
    ['--schema', '3.1', document],
    {},
    dirname(command),
  );
  t.is(code, 0, output);
});

test.serial('no operation answers 5xx or breaks its schema, and each succeeds at least once', async (t) => {
  t.timeout((BUDGET_SECONDS + 240) * 1000);
  const command = await ensureSchemathesis();
  const work = mkdtempSync(join(tmpdir(), 'schemathesis-'));
  t.teardown(() => rmSync(work, { recursive: true, force: true }));
  const console = await startTestConsole({ env: { SVC_BACKUP_DIRS: work } });
  t.teardown(() => console.stop());
  const api = new Api(console);
  const keys: PoolKey[] = [];
  for (let number = 0; number <= KEYS; number++) {
    const made = await console.client.rpc<{ key: { id: string }; secret: string }>('accessKeys.create', {
      name: `pool ${number}`,
    });
    keys.push({ id: made.key.id, secret: made.secret });
  }
  const revocable = keys.pop()!;
  const files = { fixtures: join(work, 'fixtures.json'), calls: join(work, 'calls.jsonl') };
  writeFileSync(files.fixtures, JSON.stringify(await makeFixtures(api, keys, revocable.id)));
  writeFileSync(files.calls, '');
  const base = `${console.url}/api/v1`;
  const { code, output } = await run(
    command,
    [
      'run',
      `${base}/openapi.json`,
      '--url',
      base,
      '--checks',
      CHECKS.join(','),
      '--phases',
      'examples,coverage,fuzzing',
      '--max-examples',
      String(EXAMPLES),
      '--seed',
      String(SEED),
      '--request-timeout',
      '30',
      // Hypothesis moves the recursion limit of all threads, which breaks what another one is parsing.
      '--workers',
      '1',
      '--warnings',
      'off',
      '--no-color',
      '--suppress-health-check',
      'all',
    ],
    {
      SCHEMATHESIS_HOOKS: 'hooks',
      PYTHONPATH: folder,
      PYTHONDONTWRITEBYTECODE: '1',
      SVC_API: base,
      SVC_FIXTURES: files.fixtures,
      SVC_CALLS: files.calls,
    },
    work,
  );
  if (code !== 0) {
    mkdirSync(dirname(schemathesisReport), { recursive: true });
    writeFileSync(schemathesisReport, output);
  }
  t.is(code, 0, `see ${schemathesisReport}; its end:\n${output.slice(-1500)}`);

  const calls = readFileSync(files.calls, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as [string, number]);
  const limited = calls.filter(([, status]) => status === 429).length;
  t.true(limited <= calls.length * RARE_SHARE, `${limited} of ${calls.length} calls were limited`);
  const errors = calls.filter(([name, status]) => status >= 500 && status !== BUSY && !declares(name, status));
  t.deepEqual(errors, []);
  const busy = calls.filter(([, status]) => status === BUSY).length;
  t.true(busy <= calls.length * RARE_SHARE, `${busy} of ${calls.length} calls met a busy console`);
  const succeeded = new Set(calls.filter(([, status]) => status < 300).map(([operation]) => operation));
  const expected = (await operationIds(base)).filter((name) => !(name in NEVER_2XX));
  t.deepEqual(
    expected.filter((name) => !succeeded.has(name)),
    [],
    'operations that never succeeded',
  );
  t.log(`${calls.length} calls of ${new Set(calls.map(([operation]) => operation)).size} operations`);
});

/** Whether an error of the operation's own has the status: others failed, such as a server that it asks. */
function declares(name: string, status: number): boolean {
  return PROCEDURES.get(name)?.errors.some((code) => ERRORS[code].status === status) ?? false;
}

async function operationIds(base: string): Promise<string[]> {
  const response = await fetch(`${base}/openapi.json`);
  const document = (await response.json()) as { paths: Record<string, Record<string, { operationId: string }>> };
  return Object.values(document.paths).flatMap((path) => Object.values(path).map(({ operationId }) => operationId));
}

function run(command: string, args: string[], env: NodeJS.ProcessEnv, cwd: string) {
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env.PATH, HOME: cwd, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: (BUDGET_SECONDS + 120) * 1000,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return new Promise<{ code: number | null; output: string }>((done, failed) => {
    child.on('error', failed);
    child.on('close', (code) => done({ code, output }));
  });
}
