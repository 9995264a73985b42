// The second step of a sign-in: enabling it, codes of an app, backup codes, trusted devices, turning it off.
import test from 'ava';
import { type Answer, type ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { totpCode } from '../helpers/authenticator.ts';
import { BrowserClient } from '../helpers/browser-client.ts';
import { database, running } from '../helpers/console-of-file.ts';

const ORIGIN = 'http://localhost:3000';
const { email, password, name } = TEST_OPERATOR;

interface Body {
  code?: string;
  user?: { email: string; twoFactorEnabled: boolean };
  session?: { id: string };
  twoFactorRedirect?: boolean;
  totpURI: string;
  backupCodes: string[];
  status?: boolean;
}

const rows = async (sql: string, values: unknown[] = []) => (await database.query(sql, values)).rows;
const audit = async (action: string) => rows('select * from audit_entry where action = $1 order by id desc', [action]);
const count = async (table: string) => Number((await rows(`select count(*) from ${table}`))[0].count);
const browser = () => new BrowserClient(running.url, ORIGIN);
const post = (client: ConsoleClient, path: string, body: object = {}) => client.auth<Body>('POST', path, body);
const isSignedIn = async (client: ConsoleClient) => (await client.auth('GET', '/get-session')).body !== null;

function refused(
  t: { like(actual: object, expected: object, message?: string): void },
  answer: Answer<Body>,
  ...expected: [number, string]
) {
  t.like({ status: answer.status, code: answer.body.code }, { status: expected[0], code: expected[1] });
}

/** Lets the codes of now be used again, as half a minute later others could. */
const nextStep = () => database.query('update two_factor set last_step = null, wrong_codes = 0');

/** Two-factor sign-in on; answers what the operator keeps. */
async function enabled(): Promise<{ client: ConsoleClient; totpURI: string; backupCodes: string[] }> {
  await database.query('update "user" set two_factor_enabled = false');
  await database.query('delete from two_factor');
  const client = browser();
  await client.signIn({ email, password });
  const { body } = await post(client, '/two-factor/enable', { password });
  const first = await post(client, '/two-factor/verify-totp', { code: totpCode(body.totpURI) });
  if (first.status !== 200) throw new Error(JSON.stringify(first.body));
  await nextStep();
  return { client, ...body };
}

/** A browser whose password was accepted. */
async function halfWay(client = browser()): Promise<ConsoleClient> {
  const { status, body } = await post(client, '/sign-in/email', { email, password });
  if (status !== 200 || body.twoFactorRedirect !== true) throw new Error(JSON.stringify(body));
  return client;
}

test.serial('enabling answers a secret and ten backup codes, and is in force after the first code', async (t) => {
  const client = browser();
  await client.signIn({ email, password });
  const { status, body } = await post(client, '/two-factor/enable', { password });
  t.is(status, 200);
  const uri = new URL(body.totpURI);
  t.is(uri.protocol, 'otpauth:');
  t.is(decodeURIComponent(uri.pathname), `/Edge Delivery Console:${email}`);
  t.like(Object.fromEntries(uri.searchParams), { issuer: 'Edge Delivery Console', period: '30', digits: '6' });
  t.is(new Set(body.backupCodes).size, 10);
  for (const code of body.backupCodes) t.regex(code, /^[2-9a-z]{5}-[2-9a-z]{5}$/);

  // Only sealed and hashed.
  const stored = JSON.stringify([await rows('select * from two_factor'), await rows('select * from backup_code')]);
  t.false(stored.includes(uri.searchParams.get('secret')!));
  for (const code of body.backupCodes) t.false(stored.includes(code) || stored.includes(code.replace('-', '')));

  t.is((await audit('account.two_factor_enable')).length, 0);
  const other = browser();
  await other.signIn({ email, password });
  t.true(await isSignedIn(other), 'not in force yet');

  refused(t, await post(client, '/two-factor/verify-totp', { code: totpCode(body.totpURI, 5) }), 400, 'INVALID_CODE');
  const again = await post(client, '/two-factor/enable', { password });
  t.not(again.body.totpURI, body.totpURI);
  refused(t, await post(client, '/two-factor/verify-totp', { code: totpCode(body.totpURI) }), 400, 'INVALID_CODE');

  const first = await post(client, '/two-factor/verify-totp', { code: totpCode(again.body.totpURI) });
  t.is(first.status, 200);
  t.like(first.body.user, { email, twoFactorEnabled: true });
  t.like((await audit('account.two_factor_enable'))[0], { actor_type: 'user', actor_name: name, target_name: name });
  t.like((await client.rpc<{ user: object }>('account.me')).user, { twoFactorEnabled: true });

  refused(t, await post(client, '/two-factor/enable', { password }), 409, 'TWO_FACTOR_ENABLED');
  await nextStep();
  const pending = await post(client, '/two-factor/verify-totp', { code: totpCode(again.body.totpURI) });
  refused(t, pending, 409, 'TWO_FACTOR_NOT_PENDING');
});

test.serial('enabling and disabling ask for the password', async (t) => {
  const { client } = await enabled();
  const wrong = await post(client, '/two-factor/disable', { password: 'wrong' });
  refused(t, wrong, 400, 'INVALID_PASSWORD');
  t.is(await count('two_factor'), 1);
  await post(client, '/two-factor/disable', { password });
  refused(t, await post(client, '/two-factor/enable', { password: 'wrong' }), 400, 'INVALID_PASSWORD');
  t.is(await count('two_factor'), 0);
});

test.serial(
  'the password alone opens nothing; the code of the app completes the sign-in with a new session',
  async (t) => {
    const { totpURI } = await enabled();
    const before = (await audit('auth.sign_in')).length;
    const client = await halfWay();
    t.regex(client.cookie, /^svc_second_step_[0-9a-f]{8}=[A-Za-z0-9_-]{43}$/);
    t.false(await isSignedIn(client));
    await t.throwsAsync(client.rpc('account.me'), { message: /401/ });
    t.is((await audit('auth.sign_in')).length, before, 'not signed in, not audited as such');

    const answer = await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI) });
    t.is(answer.status, 200);
    t.like(answer.body.user, { email, twoFactorEnabled: true });
    t.regex(client.cookie, /^svc_session_[0-9a-f]{8}=[A-Za-z0-9_-]{43}$/, 'the second step is over');
    t.true(await isSignedIn(client));
    t.like((await audit('auth.sign_in'))[0], { actor_name: name, metadata: { method: 'totp' }, ip: '127.0.0.1' });
  },
);

for (const offset of [-1, 0, 1]) {
  test.serial(`the code of step ${offset} is accepted`, async (t) => {
    const { totpURI } = await enabled();
    const client = await halfWay();
    // Half a minute may end between making the code and its check.
    const code = totpCode(totpURI, offset);
    const answer = await post(client, '/two-factor/verify-totp', { code });
    const late = totpCode(totpURI, offset) !== code && offset === -1;
    t.is(answer.status, late ? 400 : 200);
  });
}

for (const offset of [-3, 3]) {
  test.serial(`the code of step ${offset} is not`, async (t) => {
    const { totpURI } = await enabled();
    const client = await halfWay();
    refused(t, await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI, offset) }), 400, 'INVALID_CODE');
    t.like((await audit('auth.sign_in_failed'))[0], {
      actor_type: 'anonymous',
      metadata: { method: 'totp' },
      target_name: name,
    });
  });
}

for (const code of ['', '12345', '1234567', '12345a', ' 123456', '１２３４５６', 123_456, null]) {
  test.serial(`${JSON.stringify(code)} is no code of an app`, async (t) => {
    const { status, body } = await post(await halfWay(), '/two-factor/verify-totp', { code });
    t.is(status, 400);
    t.is(body.code, 'BAD_REQUEST');
  });
}

test.serial('a code is used at most once, and none of an earlier step after it', async (t) => {
  const { totpURI } = await enabled();
  const now = Date.now();
  const [early, used] = [totpCode(totpURI, -1, now), totpCode(totpURI, 1, now)];
  t.is((await post(await halfWay(), '/two-factor/verify-totp', { code: used })).status, 200);
  refused(t, await post(await halfWay(), '/two-factor/verify-totp', { code: used }), 400, 'INVALID_CODE');
  refused(t, await post(await halfWay(), '/two-factor/verify-totp', { code: early }), 400, 'INVALID_CODE');
});

test.serial('of parallel uses of one code one signs in', async (t) => {
  const { totpURI } = await enabled();
  const browsers = await Promise.all(Array.from({ length: 5 }, () => halfWay()));
  const code = totpCode(totpURI, 1);
  const answers = await Promise.all(browsers.map((client) => post(client, '/two-factor/verify-totp', { code })));
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400, 400]);
});

test.serial('a backup code works once, however it is typed', async (t) => {
  const { backupCodes } = await enabled();
  const typed = ` ${backupCodes[0]!.toUpperCase().replace('-', ' ')} `;
  const client = await halfWay();
  const answer = await post(client, '/two-factor/verify-backup-code', { code: typed });
  t.is(answer.status, 200);
  t.true(await isSignedIn(client));
  t.like((await audit('auth.sign_in'))[0], { metadata: { method: 'backup_code', backupCodesLeft: 9 } });
  refused(t, await post(await halfWay(), '/two-factor/verify-backup-code', { code: typed }), 400, 'INVALID_CODE');
  t.is((await post(await halfWay(), '/two-factor/verify-backup-code', { code: backupCodes[1]! })).status, 200);
  refused(
    t,
    await post(await halfWay(), '/two-factor/verify-backup-code', { code: 'aaaaa-aaaaa' }),
    400,
    'INVALID_CODE',
  );
});

test.serial('of parallel uses of one backup code one signs in', async (t) => {
  const { backupCodes } = await enabled();
  const browsers = await Promise.all(Array.from({ length: 5 }, () => halfWay()));
  const uses = browsers.map((client) => post(client, '/two-factor/verify-backup-code', { code: backupCodes[0]! }));
  const answers = await Promise.all(uses);
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 400, 400, 400, 400]);
  t.is(await count('backup_code'), 9);
});

test.serial('of parallel answers to one second step one signs in', async (t) => {
  const { backupCodes } = await enabled();
  const client = await halfWay();
  const headers = { cookie: client.cookie, origin: ORIGIN };
  const answers = await Promise.all(
    backupCodes
      .slice(0, 4)
      .map((code) => client.request('POST', '/api/auth/two-factor/verify-backup-code', { code }, headers)),
  );
  t.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401]);
  t.is(await count('backup_code'), 9, 'a refused answer uses no code up');
});

test.serial('a second step ends after ten minutes', async (t) => {
  const { totpURI, backupCodes } = await enabled();
  const client = await halfWay();
  const [{ left }] = await rows('select extract(epoch from max(expires_at) - now()) as left from second_step');
  t.true(left > 590 && left <= 600, String(left));
  await database.query(`update second_step set expires_at = now() - interval '1 second'`);
  refused(t, await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI) }), 401, 'SECOND_STEP_EXPIRED');
  const backup = await post(client, '/two-factor/verify-backup-code', { code: backupCodes[0]! });
  refused(t, backup, 401, 'SECOND_STEP_EXPIRED');
  t.is(await count('backup_code'), 10);
});

test.serial('five wrong codes end a second step', async (t) => {
  const { totpURI } = await enabled();
  const client = await halfWay();
  for (let index = 0; index < 5; index++) {
    refused(t, await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI, 9) }), 400, 'INVALID_CODE');
  }
  refused(t, await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI) }), 401, 'SECOND_STEP_EXPIRED');
});

test.serial('twenty wrong codes of an account in an hour stop codes of the app, not backup codes', async (t) => {
  const { totpURI, backupCodes } = await enabled();
  for (let round = 0; round < 4; round++) {
    const client = await halfWay();
    for (let index = 0; index < 5; index++) {
      await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI, 9) });
    }
  }
  const client = await halfWay();
  const answer = await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI) });
  refused(t, answer, 429, 'SIGN_IN_RATE_LIMITED');
  t.true(Number(answer.headers.get('retry-after')) > 3500);
  t.is((await post(client, '/two-factor/verify-backup-code', { code: backupCodes[0]! })).status, 200);
  await database.query(`update two_factor set wrong_since = now() - interval '61 minutes'`);
  t.is((await post(await halfWay(), '/two-factor/verify-totp', { code: totpCode(totpURI) })).status, 200);
});

test.serial('codes without a second step are refused', async (t) => {
  const { totpURI, backupCodes } = await enabled();
  const cookie = `svc_second_step_${running.running.runtime.env.instanceId}=${'A'.repeat(43)}`;
  for (const headers of [{ origin: ORIGIN }, { origin: ORIGIN, cookie }]) {
    for (const [path, code] of [
      ['totp', totpCode(totpURI)],
      ['backup-code', backupCodes[0]],
    ]) {
      const answer = await browser().request<Body>('POST', `/api/auth/two-factor/verify-${path}`, { code }, headers);
      refused(t, answer, 401, 'SECOND_STEP_EXPIRED');
      t.deepEqual(answer.headers.getSetCookie(), []);
    }
  }
  t.is(await count('backup_code'), 10);
});

test.serial(
  'a session that was brought to the second step ends with it, and a chosen one is not taken over',
  async (t) => {
    const { client: before, totpURI } = await enabled();
    const old = before.cookie;
    await halfWay(before);
    t.is((await post(before, '/two-factor/verify-totp', { code: totpCode(totpURI) })).status, 200);
    t.not(before.cookie, old);
    const ended = await before.request('GET', '/api/auth/get-session', undefined, { cookie: old });
    t.is(ended.body, null);
    await nextStep();
    const chosen = await halfWay();
    const cookie = `${chosen.cookie}; svc_session_${running.running.runtime.env.instanceId}=${'B'.repeat(43)}`;
    const code = totpCode(totpURI);
    const path = '/api/auth/two-factor/verify-totp';
    const answer = await chosen.request('POST', path, { code }, { cookie, origin: ORIGIN });
    t.is(answer.status, 200);
    t.false(answer.headers.getSetCookie().join().includes('BBBB'));
  },
);

test.serial('rememberMe of the first step counts for the session', async (t) => {
  const { totpURI } = await enabled();
  const client = browser();
  await post(client, '/sign-in/email', { email, password, rememberMe: false });
  const answer = await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI) });
  const session = answer.headers.getSetCookie().find((cookie) => cookie.startsWith('svc_session_'));
  t.false(session!.includes('Max-Age'));
  const { session: made } = (await client.auth<Required<Body>>('GET', '/get-session')).body;
  await database.query(`update session set refreshed_at = now() - interval '25 hours' where id = $1`, [made.id]);
  const refreshed = await client.auth('GET', '/get-session');
  t.regex(refreshed.headers.getSetCookie()[0]!, /^svc_session_[^;]+; Path=\/; HttpOnly; SameSite=Lax$/);
});

test.serial('a trusted device is not asked for 30 days, by its own cookie', async (t) => {
  const { totpURI } = await enabled();
  const client = await halfWay();
  const answer = await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI), trustDevice: true });
  const cookie = answer.headers.getSetCookie().find((line) => line.startsWith('svc_trusted_device_'));
  t.regex(cookie!, /=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=2592000$/);
  await post(client, '/sign-out');
  t.is((await post(client, '/sign-in/email', { email, password })).body.user?.email, email);
  t.true(await isSignedIn(client));
  await halfWay();
  await post(client, '/sign-out');
  await database.query(`update trusted_device set expires_at = now() - interval '1 second'`);
  await halfWay(client);
});

test.serial('a trusted device still needs the password', async (t) => {
  const { totpURI } = await enabled();
  const client = await halfWay();
  await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI), trustDevice: true });
  refused(t, await post(client, '/sign-in/email', { email, password: 'wrong' }), 401, 'INVALID_CREDENTIALS');
});

test.serial('disabling ends trusted devices and half-way sign-ins, and the password is enough again', async (t) => {
  const { totpURI } = await enabled();
  const client = await halfWay();
  await post(client, '/two-factor/verify-totp', { code: totpCode(totpURI), trustDevice: true });
  const other = await halfWay();
  t.deepEqual((await post(client, '/two-factor/disable', { password })).body, { status: true } as never);
  t.deepEqual([await count('trusted_device'), await count('second_step'), await count('backup_code')], [0, 0, 0]);
  t.false(client.cookie.includes('trusted'));
  t.like((await audit('account.two_factor_disable'))[0], { actor_name: name });
  refused(t, await post(other, '/two-factor/verify-totp', { code: totpCode(totpURI) }), 401, 'SECOND_STEP_EXPIRED');
  await browser().signIn({ email, password });
  const entries = (await audit('account.two_factor_disable')).length;
  t.deepEqual((await post(client, '/two-factor/disable', { password })).body, { status: true } as never);
  t.is((await audit('account.two_factor_disable')).length, entries, 'nothing was on');
});

test.serial('no code, secret or password is in the audit log', async (t) => {
  const { totpURI, backupCodes } = await enabled();
  const code = totpCode(totpURI);
  await post(await halfWay(), '/two-factor/verify-totp', { code });
  await post(await halfWay(), '/two-factor/verify-totp', { code });
  await post(await halfWay(), '/two-factor/verify-backup-code', { code: backupCodes[0]! });
  await post(await halfWay(), '/two-factor/verify-backup-code', { code: 'wrong-wrong' });
  const text = JSON.stringify((await rows('select metadata from audit_entry')).map(({ metadata }) => metadata));
  for (const secret of [`"${code}"`, backupCodes[0]!, 'wrong-wrong', password]) t.false(text.includes(secret), secret);
});
