// `npm run recover`: the operator's account from the machine's shell.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { root } from '../../bin/lib/root.ts';
import { SoftPasskey, totpCode } from '../helpers/authenticator.ts';
import { BrowserClient } from '../helpers/browser-client.ts';
import { database, running } from '../helpers/console-of-file.ts';
import { createTestDatabase } from '../helpers/servers.ts';

const ORIGIN = 'http://localhost:3000';
const { email, password } = TEST_OPERATOR;
const NEW_PASSWORD = 'a new pässword of the shell';
const SCRIPT = join(root, 'bin', 'recover.ts');

interface Ended {
  code: number | null;
  output: string;
}

interface Run {
  args?: string[];
  input?: string;
  env?: NodeJS.ProcessEnv;
}

/** Runs a program; `talk` gets what it has said so far and answers what to type now. */
function run(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  talk: (said: string) => string | null,
): Promise<Ended> {
  const child = spawn(command, args, { cwd: root, env: { PATH: process.env.PATH, ...env }, timeout: 60_000 });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const typed = talk(output);
      if (typed !== null) child.stdin.write(typed);
    });
  }
  child.stdin.on('error', () => undefined);
  const first = talk('');
  if (first !== null) child.stdin.end(first);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

const recover = ({ args = [], input = '', env = { DATABASE_URL: running.databaseUrl } }: Run) =>
  run(process.execPath, [SCRIPT, ...args], env, (said) => (said === '' ? input : null));

const rows = async (sql: string) => (await database.query(sql)).rows;
const state = async () =>
  (
    await rows(`select u.password_hash, u.two_factor_enabled, (select count(*)::int from session) as sessions,
      (select count(*)::int from two_factor) as factors, (select count(*)::int from backup_code) as codes,
      (select count(*)::int from second_step) as steps, (select count(*)::int from trusted_device) as devices,
      (select count(*)::int from passkey) as passkeys, (select count(*)::int from audit_entry) as audits from "user" u`)
  )[0];
const audits = () => rows(`select * from audit_entry where action = 'account.recover' order by id desc`);
const browser = () => new BrowserClient(running.url, ORIGIN);
const signIn = async (secret: string) =>
  (await browser().auth<{ twoFactorRedirect?: boolean }>('POST', '/sign-in/email', { email, password: secret })).body;

/** An account with everything that recovery takes away, and a passkey. */
async function busyAccount(secret: string): Promise<ConsoleClient> {
  const client = browser();
  await client.signIn({ email, password: secret });
  const { totpURI } = (await client.auth<{ totpURI: string }>('POST', '/two-factor/enable', { password: secret })).body;
  await client.auth('POST', '/two-factor/verify-totp', { code: totpCode(totpURI), trustDevice: true });
  const options = await client.auth<{ challenge: string; user: { id: string } }>(
    'GET',
    '/passkey/generate-register-options',
  );
  const response = new SoftPasskey(ORIGIN).register(options.body);
  await client.auth('POST', '/passkey/verify-registration', { response, name: 'laptop' });
  await signIn(secret);
  return client;
}

test.serial(
  'it resets the password and turns the second factor off, in one go, and everything open ends',
  async (t) => {
    const client = await busyAccount(password);
    const before = await state();
    t.like(before, { two_factor_enabled: true, factors: 1, codes: 10, steps: 1, devices: 1, passkeys: 1 });
    const input = `${NEW_PASSWORD}\nsecond line\n`;
    const { code, output } = await recover({ args: ['--reset-password', '--disable-two-factor'], input });
    t.is(code, 0, output);
    t.false(output.includes(NEW_PASSWORD));
    const after = await state();
    t.like(after, { two_factor_enabled: false, factors: 0, codes: 0, steps: 0, devices: 0, sessions: 0, passkeys: 1 });
    t.regex(after.password_hash, /^scrypt\$/);
    t.is((await client.auth('GET', '/get-session')).body, null);
    t.like((await audits())[0], {
      actor_type: 'system',
      actor_name: 'recover',
      target_type: 'user',
      metadata: { passwordReset: true, twoFactorDisabled: true, sessionsRevoked: before.sessions },
    });
    t.like(await signIn(NEW_PASSWORD), { user: { email } });
    t.like(await signIn(password), { code: 'INVALID_CREDENTIALS' });
    t.regex(output, /passkeys that can still sign in: 1/);
  },
);

test.serial('each of the two alone leaves the other', async (t) => {
  await busyAccount(NEW_PASSWORD);
  t.is((await recover({ args: ['--reset-password'], input: `${password}\r\n` })).code, 0);
  t.deepEqual(await signIn(password), { twoFactorRedirect: true });
  t.like((await audits())[0], { metadata: { passwordReset: true, twoFactorDisabled: false } });
  t.is((await recover({ args: ['--disable-two-factor'] })).code, 0);
  t.like(await signIn(password), { user: { email } });
  t.like((await audits())[0], { metadata: { passwordReset: false, twoFactorDisabled: true } });
});

for (const [what, given, status] of [
  ['without an option', {}, 2],
  ['with an unknown option', { args: ['--reset'] }, 2],
  ['with a password as value', { args: [`--reset-password=${NEW_PASSWORD}`] }, 2],
  ['with a password as argument', { args: ['--reset-password', NEW_PASSWORD] }, 2],
  ['with options of two kinds', { args: ['restored', '--disable-two-factor'] }, 2],
  ['with a word it does not know', { args: ['restore'] }, 2],
  ['without a database', { args: ['--disable-two-factor'], env: {} }, 1],
  [
    'with a database that is away',
    { args: ['--disable-two-factor'], env: { DATABASE_URL: 'postgres://127.0.0.1:1/x' } },
    1,
  ],
  ['with no password', { args: ['--reset-password'] }, 1],
  ['with an empty password', { args: ['--reset-password'], input: '\n' }, 1],
  ['with a password of 11 characters', { args: ['--reset-password'], input: `${'ä'.repeat(11)}\n` }, 1],
  ['with a password of 129 characters', { args: ['--reset-password'], input: `${'x'.repeat(129)}\n` }, 1],
] as [string, Run, number][]) {
  test.serial(`${what} nothing is changed and the status is ${status}`, async (t) => {
    await signIn(password);
    const before = await state();
    const { code, output } = await recover(given);
    t.is(code, status, output);
    t.deepEqual(await state(), before);
    t.false(output.includes(NEW_PASSWORD));
    if (status === 2) t.regex(output, /Usage: /);
  });
}

test.serial('the password is not taken from the environment', async (t) => {
  const env = { DATABASE_URL: running.databaseUrl, PASSWORD: NEW_PASSWORD, NEW_PASSWORD, SVC_PASSWORD: NEW_PASSWORD };
  t.is((await recover({ args: ['--reset-password'], env })).code, 1);
});

test.serial('a console without an operator has nothing to recover', async (t) => {
  const empty = await createTestDatabase();
  try {
    const { code, output } = await recover({ args: ['--disable-two-factor'], env: { DATABASE_URL: empty.url } });
    t.is(code, 1);
    t.regex(output, /no operator/);
  } finally {
    await empty.drop();
  }
});

test('--help says how and changes nothing', async (t) => {
  const { code, output } = await recover({ args: ['--help'], env: {} });
  t.is(code, 0);
  for (const word of ['--reset-password', '--disable-two-factor', 'restored', 'Exit status']) {
    t.true(output.includes(word), word);
  }
});

/** On a terminal of its own, which `script` makes; the output is what the terminal shows. */
function onTerminal(...answers: string[]): Promise<Ended> {
  const prompts = ['New password: ', 'Once more: '];
  let answered = 0;
  const command = 'npm run -s recover -- --reset-password';
  const env = { DATABASE_URL: running.databaseUrl };
  return run('script', ['-qec', command, '/dev/null'], env, (said) => {
    const prompt = prompts[answered];
    return prompt && said.includes(prompt) ? (answers[answered++] ?? null) : null;
  });
}

test.serial('on a terminal the password is typed twice, without echo', async (t) => {
  const { code, output } = await onTerminal(`wrong\u0015${NEW_PASSWORD}x\u007f\r`, `${NEW_PASSWORD}\r`);
  t.is(code, 0, output);
  t.regex(output, /^New password: \s+Once more: \s+account /);
  t.false(/shell|wrong/.test(output), 'nothing typed is shown');
  t.like(await signIn(NEW_PASSWORD), { user: { email } });
  t.is((await recover({ args: ['--reset-password'], input: password })).code, 0);
});

for (const [what, answers] of [
  ['two different passwords', [`${NEW_PASSWORD}\r`, `${NEW_PASSWORD}!\r`]],
  ['Ctrl-C', [`${NEW_PASSWORD}\u0003`]],
  ['Ctrl-C at the second question', [`${NEW_PASSWORD}\r`, '\u0003']],
  ['Ctrl-D', ['\u0004']],
] as const) {
  test.serial(`${what} on a terminal changes nothing`, async (t) => {
    await signIn(password);
    const before = await state();
    const { code, output } = await onTerminal(...answers);
    t.is(code, 1, output);
    t.regex(output, /nothing was changed/);
    t.deepEqual(await state(), before);
  });
}

test('npm run recover is this program', (t) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  t.true(scripts.recover?.endsWith('bin/recover.ts'));
});
