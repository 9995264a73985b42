// Passkeys against a software authenticator that can lie; a real browser uses them in test/e2e/passkey.test.ts.
import { generateKeyPairSync, sign } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { type Answer, type ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { type Lies, SoftPasskey, totpCode } from '../helpers/authenticator.ts';
import { BrowserClient } from '../helpers/browser-client.ts';
import { startTestConsole } from '../helpers/console.ts';
import { database, running } from '../helpers/console-of-file.ts';
import { eventually } from '../helpers/eventually.ts';

const ORIGIN = 'http://localhost:3000';
const { email, password, name } = TEST_OPERATOR;

interface Options {
  challenge: string;
  timeout: number;
  rpId: string;
  rp: { id: string; name: string };
  user: { id: string; name: string; displayName: string };
  authenticatorSelection: object;
  excludeCredentials: { id: string }[];
  allowCredentials?: unknown[];
  userVerification: string;
}

interface Passkey {
  id: string;
  name: string;
  createdAt: string;
  lastUsedAt: string | null;
  deviceType: string;
  backedUp: boolean;
}

interface Body {
  code?: string;
  data?: { issues: { path: string }[] };
  user: { email: string };
  session: { id: string; userId: string; expiresAt: string };
}

const rows = async (sql: string, values: unknown[] = []) => (await database.query(sql, values)).rows;
const audit = async (action: string) => rows('select * from audit_entry where action = $1 order by id desc', [action]);
const browser = () => new BrowserClient(running.url, ORIGIN);
const isSignedIn = async (client: ConsoleClient) => (await client.auth('GET', '/get-session')).body !== null;
const list = async (client: ConsoleClient) => (await client.auth<Passkey[]>('GET', '/passkey/list-user-passkeys')).body;
const registerOptions = async (client: ConsoleClient) =>
  (await client.auth<Options>('GET', '/passkey/generate-register-options')).body;
const signInOptions = async (client: ConsoleClient) =>
  (await client.auth<Options>('GET', '/passkey/generate-authenticate-options')).body;
const verifyRegistration = (client: ConsoleClient, response: unknown, label: unknown = 'laptop') =>
  client.auth<Body & Passkey>('POST', '/passkey/verify-registration', { response, name: label });
const verifyAuthentication = (client: ConsoleClient, response: unknown) =>
  client.auth<Body>('POST', '/passkey/verify-authentication', { response });

async function signedIn(): Promise<ConsoleClient> {
  const client = browser();
  await client.signIn({ email, password });
  return client;
}

/** A passkey of the operator. */
async function registered(label = 'laptop'): Promise<{ passkey: SoftPasskey; client: ConsoleClient; id: string }> {
  const client = await signedIn();
  const passkey = new SoftPasskey(ORIGIN);
  const { status, body } = await verifyRegistration(client, passkey.register(await registerOptions(client)), label);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return { passkey, client, id: body.id };
}

async function use(passkey: SoftPasskey, lies: Lies = {}, client = browser()): Promise<Answer<Body>> {
  return verifyAuthentication(client, passkey.authenticate(await signInOptions(client), lies));
}

test.afterEach.always(async () => {
  await database.query('delete from passkey');
  await database.query('delete from passkey_challenge');
});

test.serial(
  'a passkey is registered for the host of the public address, discoverable and with user verification',
  async (t) => {
    const client = await signedIn();
    const options = await registerOptions(client);
    t.deepEqual(options.rp, { id: 'localhost', name: 'Edge Delivery Console' });
    t.like(options.user, { name: email, displayName: name });
    t.like(options.authenticatorSelection, { residentKey: 'required', userVerification: 'required' });
    t.is(options.timeout, 300_000);
    t.true(Buffer.from(options.challenge, 'base64url').length >= 16);
    const passkey = new SoftPasskey(ORIGIN);
    const { status, body } = await verifyRegistration(client, passkey.register(options), 'my laptop');
    t.is(status, 200);
    t.like(body, { name: 'my laptop', lastUsedAt: null, deviceType: 'singleDevice', backedUp: false });
    t.deepEqual(await list(client), [body] as never);
    t.like((await audit('account.passkey_add'))[0], {
      actor_type: 'user',
      actor_name: name,
      target_type: 'user',
      metadata: { passkeyId: body.id, name: 'my laptop' },
    });
    t.deepEqual(
      (await registerOptions(client)).excludeCredentials.map(({ id }) => id),
      [passkey.id],
    );
  },
);

test.serial('it signs in without an e-mail address, as the user that the authenticator names', async (t) => {
  const { passkey } = await registered();
  const client = browser();
  const options = await signInOptions(client);
  t.is(options.rpId, 'localhost');
  t.is(options.userVerification, 'required');
  t.falsy(options.allowCredentials?.length, 'nothing tells who has passkeys');
  const { status, body } = await verifyAuthentication(client, passkey.authenticate(options));
  t.is(status, 200);
  t.is(body.user.email, email);
  t.true(Date.parse(body.session.expiresAt) > Date.now() + 6 * 24 * 3600 * 1000);
  t.true(await isSignedIn(client));
  t.like((await audit('auth.sign_in'))[0], { actor_name: name, metadata: { method: 'passkey' } });
  t.truthy((await list(client))[0]!.lastUsedAt);
  t.is((await use(passkey)).status, 200, 'again, with the next counter');
});

test.serial('it skips the second step', async (t) => {
  const { passkey, client } = await registered();
  const { body } = await client.auth<{ totpURI: string }>('POST', '/two-factor/enable', { password });
  await client.auth('POST', '/two-factor/verify-totp', { code: totpCode(body.totpURI) });
  const other = browser();
  t.is(
    (await other.auth<{ twoFactorRedirect: boolean }>('POST', '/sign-in/email', { email, password })).body
      .twoFactorRedirect,
    true,
  );
  t.is((await use(passkey, {}, other)).status, 200);
  t.true(await isSignedIn(other));
  t.false(other.cookie.includes('second_step'), 'the half-way sign-in of the browser is over');
  t.is((await client.auth('POST', '/two-factor/disable', { password })).status, 200);
});

test.serial('a session that was brought to a sign-in by passkey ends', async (t) => {
  const { passkey, client } = await registered();
  const brought = client.cookie;
  t.is((await use(passkey, {}, client)).status, 200);
  t.not(client.cookie, brought);
  t.is((await client.request('GET', '/api/auth/get-session', undefined, { cookie: brought })).body, null);
});

const FOREIGN = generateKeyPairSync('ec', { namedCurve: 'P-256' });

for (const [what, lies] of [
  ['of another origin', { origin: 'http://localhost:3001' }],
  ['of https instead of http', { origin: 'https://localhost:3000' }],
  ['for another host', { rpId: 'evil.example' }],
  ['without user verification', { userVerified: false }],
  ['to a challenge nobody gave', { challenge: Buffer.alloc(32, 7).toString('base64url') }],
  ['to a challenge that is no text', { challenge: ['x'] as unknown as string }],
  ['to a challenge the database cannot hold', { challenge: 'a\u0000b' }],
  ['of the other kind', { type: 'webauthn.create' }],
  ['of another user', { userHandle: Buffer.from('someone else').toString('base64url') }],
  ['with a foreign credential id', { credentialId: Buffer.alloc(16, 9).toString('base64url') }],
  ['whose counter stands still', { counter: 1 }],
  ['whose counter went back', { counter: 0 }],
  ['signed by another key', { signature: sign('sha256', Buffer.from('x'), FOREIGN.privateKey) }],
  ['with a broken signature', { signature: Buffer.alloc(70, 1) }],
] as [string, Lies][]) {
  test.serial(`a sign-in ${what} is refused, without a session, and audited`, async (t) => {
    const { passkey } = await registered();
    const before = (await audit('auth.sign_in_failed')).length;
    const client = browser();
    const answer = await use(passkey, lies, client);
    t.like({ status: answer.status, code: answer.body.code }, { status: 400, code: 'PASSKEY_REFUSED' });
    t.deepEqual(answer.headers.getSetCookie(), []);
    t.false(await isSignedIn(client));
    const entries = await audit('auth.sign_in_failed');
    t.is(entries.length, before + 1);
    t.like(entries[0], { metadata: { method: 'passkey' } });
  });
}

for (const [what, lies] of [
  ['of another origin', { origin: 'https://evil.example' }],
  ['for another host', { rpId: 'evil.example' }],
  ['without user verification', { userVerified: false }],
  ['to a challenge nobody gave', { challenge: Buffer.alloc(32, 7).toString('base64url') }],
  ['to a challenge that is no text', { challenge: ['x'] as unknown as string }],
  ['to a challenge the database cannot hold', { challenge: 'a\u0000b' }],
  ['of the other kind', { type: 'webauthn.get' }],
] as [string, Lies][]) {
  test.serial(`a registration ${what} is refused`, async (t) => {
    const client = await signedIn();
    const response = new SoftPasskey(ORIGIN).register(await registerOptions(client), lies);
    const { status, body } = await verifyRegistration(client, response);
    t.like({ status, code: body.code }, { status: 400, code: 'PASSKEY_REFUSED' });
    t.deepEqual(await list(client), []);
  });
}

test.serial('a challenge is good once, even when its answer was refused', async (t) => {
  const { passkey } = await registered();
  const client = browser();
  const options = await signInOptions(client);
  t.is((await verifyAuthentication(client, passkey.authenticate(options))).status, 200);
  t.is((await verifyAuthentication(client, passkey.authenticate(options))).status, 400);
  const other = await signInOptions(client);
  t.is((await verifyAuthentication(client, passkey.authenticate(other, { userVerified: false }))).status, 400);
  t.is((await verifyAuthentication(client, passkey.authenticate(other))).status, 400);
});

test.serial('of parallel answers to one challenge one signs in', async (t) => {
  const { passkey } = await registered();
  const options = await signInOptions(browser());
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => verifyAuthentication(browser(), passkey.authenticate(options))),
  );
  t.is(answers.filter(({ status }) => status === 200).length, 1);
});

test.serial('of parallel sign-ins with one counter one signs in', async (t) => {
  const { passkey } = await registered();
  const responses = await Promise.all(
    Array.from({ length: 5 }, async () => passkey.authenticate(await signInOptions(browser()), { counter: 7 })),
  );
  const answers = await Promise.all(responses.map((response) => verifyAuthentication(browser(), response)));
  t.is(answers.filter(({ status }) => status === 200).length, 1);
});

test.serial('a challenge ends after five minutes', async (t) => {
  const { passkey } = await registered();
  const client = browser();
  const options = await signInOptions(client);
  const [{ left }] = await rows('select extract(epoch from max(expires_at) - now()) as left from passkey_challenge');
  t.true(left > 290 && left <= 300, String(left));
  await database.query(`update passkey_challenge set expires_at = now() - interval '1 second'`);
  t.is((await verifyAuthentication(client, passkey.authenticate(options))).status, 400);
});

test.serial('a challenge for a registration belongs to its session, and none serves the other purpose', async (t) => {
  const { passkey, client } = await registered();
  const other = await signedIn();
  t.is((await verifyRegistration(other, new SoftPasskey(ORIGIN).register(await registerOptions(client)))).status, 400);
  t.is((await verifyAuthentication(browser(), passkey.authenticate(await registerOptions(client)))).status, 400);
  const options = { ...(await registerOptions(client)), ...(await signInOptions(browser())) };
  t.is((await verifyRegistration(client, new SoftPasskey(ORIGIN).register(options))).status, 400);
});

test.serial('challenges that an address asks for are bounded, and the newest work', async (t) => {
  const { passkey } = await registered();
  for (let index = 0; index < 30; index++) await signInOptions(browser());
  const [{ count }] = await rows('select count(*) from passkey_challenge');
  t.is(Number(count), 20);
  t.is((await use(passkey)).status, 200);
});

test.serial('a change of the password at the same time leaves no passkey of a session that it ended', async (t) => {
  const [client, other] = [await signedIn(), await signedIn()];
  const response = new SoftPasskey(ORIGIN).register(await registerOptions(other));
  const kept = (await client.auth<Body>('GET', '/get-session')).body.session.id;
  const holding = await database.connect();
  try {
    // Held until the registration has passed its checks and waits where the change of the password would be.
    await holding.query('begin');
    await holding.query('select 1 from "user" for update');
    const late = verifyRegistration(other, response);
    await eventually(async () => {
      const [{ n }] = await rows(
        `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      );
      return n > 0;
    });
    await holding.query('delete from session where id <> $1', [kept]);
    await holding.query('commit');
    t.is((await late).status, 401);
  } finally {
    holding.release();
  }
  t.deepEqual(await list(client), []);
});

test.serial('a passkey cannot be registered twice', async (t) => {
  const { passkey, client } = await registered();
  const { status, body } = await verifyRegistration(client, passkey.register(await registerOptions(client)));
  t.like({ status, code: body.code }, { status: 400, code: 'PASSKEY_REFUSED' });
  t.is((await list(client)).length, 1);
});

test.serial('there are at most 20', async (t) => {
  const client = await signedIn();
  const responses = [];
  for (let index = 0; index < 20; index++) {
    responses.push(new SoftPasskey(ORIGIN).register(await registerOptions(client)));
  }
  for (const response of responses.slice(1)) t.is((await verifyRegistration(client, response)).status, 200);
  const late = new SoftPasskey(ORIGIN).register(await registerOptions(client));
  t.is((await verifyRegistration(client, responses[0])).status, 200);
  for (const answer of [
    await verifyRegistration(client, late),
    await client.auth<Body>('GET', '/passkey/generate-register-options'),
  ]) {
    t.like({ status: answer.status, code: answer.body.code }, { status: 409, code: 'PASSKEY_LIMIT' });
  }
});

for (const label of ['', ' \t', 'x'.repeat(65), 7, null, undefined]) {
  test.serial(`${JSON.stringify(label)?.slice(0, 10)} is no name of a passkey`, async (t) => {
    const client = await signedIn();
    const response = new SoftPasskey(ORIGIN).register(await registerOptions(client));
    const body = { response, ...(label !== undefined && { name: label }) };
    const answer = await client.auth<Body>('POST', '/passkey/verify-registration', body);
    t.is(answer.status, 400);
    t.is(answer.body.data?.issues[0]?.path, '/name');
    t.is((await verifyRegistration(client, response, 'x'.repeat(64))).status, 200, 'its challenge was not used up');
  });
}

test.serial('a deleted passkey opens nothing', async (t) => {
  const { passkey, client, id } = await registered('phone');
  const answer = await client.auth<{ status: boolean }>('POST', '/passkey/delete-passkey', { id });
  t.deepEqual(answer.body, { status: true });
  t.deepEqual(await list(client), []);
  t.like((await audit('account.passkey_delete'))[0], { actor_name: name, metadata: { passkeyId: id, name: 'phone' } });
  t.is((await use(passkey)).status, 400);
  const again = await client.auth<Body>('POST', '/passkey/delete-passkey', { id });
  t.like({ status: again.status, code: again.body.code }, { status: 404, code: 'PASSKEY_NOT_FOUND' });
});

test.serial('only own passkeys are listed and deleted', async (t) => {
  const { passkey, client, id } = await registered();
  const [other] = await rows(
    `insert into "user" (name, email, password_hash) values ('Other', 'other@example.com', 'x') returning id`,
  );
  await database.query('update passkey set user_id = $1', [other.id]);
  try {
    t.deepEqual(await list(client), []);
    const answer = await client.auth<Body>('POST', '/passkey/delete-passkey', { id });
    t.like({ status: answer.status, code: answer.body.code }, { status: 404, code: 'PASSKEY_NOT_FOUND' });
    t.is((await rows('select id from passkey')).length, 1);
    // Its authenticator still names the first user.
    t.is((await use(passkey)).status, 400);
  } finally {
    await database.query('delete from "user" where id = $1', [other.id]);
  }
});

test.serial('an answer of another shape names the field', async (t) => {
  const { passkey } = await registered();
  const good = passkey.authenticate(await signInOptions(browser()));
  for (const [path, response] of [
    ['/response', null],
    ['/response', 'x'],
    ['/response/id', { ...good, id: '' }],
    ['/response/id', { ...good, id: 'a b' }],
    ['/response/id', { ...good, id: 'a'.repeat(1401) }],
    ['/response/type', { ...good, type: 'password' }],
    ['/response/response', { ...good, response: undefined }],
    ['/response/response/userHandle', { ...good, response: { ...good.response, userHandle: null } }],
    ['/response/response/signature', { ...good, response: { ...good.response, signature: '!' } }],
    ['/response/response/clientDataJSON', { ...good, response: { ...good.response, clientDataJSON: 7 } }],
  ] as const) {
    const { status, body } = await verifyAuthentication(browser(), response);
    t.is(status, 400, path);
    t.is(body.data?.issues[0]?.path, path);
  }
  for (const part of ['clientDataJSON', 'authenticatorData']) {
    const response = { ...good, response: { ...good.response, [part]: 'AAAA' } };
    t.is((await verifyAuthentication(browser(), response)).body.code, 'PASSKEY_REFUSED', part);
  }
});

/** Changes some bytes of a base64url text, or cuts it. */
const damage = fc.oneof(
  fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) }).map(({ at, to }) => (text: string) => {
    const bytes = Buffer.from(text, 'base64url');
    bytes[at % bytes.length] = to;
    return bytes.toString('base64url');
  }),
  fc.nat().map((at) => (text: string) => text.slice(0, 1 + (at % text.length))),
  fc.uint8Array({ minLength: 1, maxLength: 300 }).map((bytes) => () => Buffer.from(bytes).toString('base64url')),
  fc.json({ maxDepth: 2 }).map((json) => () => Buffer.from(json).toString('base64url')),
);

test.serial('whatever an authenticator sends, it is accepted or refused', async (t) => {
  const { passkey, client } = await registered();
  const part = <T extends string>(...names: T[]) => fc.constantFrom(...names);
  await fc.assert(
    fc.asyncProperty(
      part('clientDataJSON', 'authenticatorData', 'signature', 'userHandle'),
      part('clientDataJSON', 'attestationObject'),
      damage,
      async (ofSignIn, ofRegistration, change) => {
        const signIn = passkey.authenticate(await signInOptions(browser()));
        signIn.response[ofSignIn] = change(signIn.response[ofSignIn]);
        const first = await verifyAuthentication(browser(), signIn);
        const response = new SoftPasskey(ORIGIN).register(await registerOptions(client));
        response.response[ofRegistration] = change(response.response[ofRegistration]);
        const second = await verifyRegistration(client, response);
        await database.query('delete from passkey where credential_id <> $1', [passkey.id]);
        for (const { status } of [first, second]) if (status !== 200 && status !== 400) throw new Error(String(status));
      },
    ),
    { numRuns: 60 },
  );
  t.is((await use(passkey)).status, 200, 'the passkey still works');
});

for (const publicUrl of ['http://127.0.0.1:3000', 'http://[::1]:3000']) {
  test.serial(`a console at ${publicUrl} says that passkeys need a name`, async (t) => {
    const other = await startTestConsole({ env: { SVC_PUBLIC_URL: publicUrl } });
    try {
      for (const path of ['/passkey/generate-register-options', '/passkey/generate-authenticate-options']) {
        const answer = await other.client.auth<{ code: string; data: object }>('GET', path);
        t.is(answer.status, 409);
        t.like(answer.body, { code: 'PASSKEYS_UNAVAILABLE', data: { publicUrl } });
      }
    } finally {
      await other.stop();
    }
  });
}

test.serial(
  'behind https passkeys belong to the host without its port, and only its own origin may use them',
  async (t) => {
    const publicUrl = 'https://console.example.com:8443';
    const other = await startTestConsole({ env: { SVC_PUBLIC_URL: publicUrl } });
    try {
      const client = new BrowserClient(other.url, publicUrl);
      await client.signIn({ email, password });
      const options = await registerOptions(client);
      t.is(options.rp.id, 'console.example.com');
      const passkey = new SoftPasskey(publicUrl);
      t.is((await verifyRegistration(client, passkey.register(options))).status, 200);
      for (const origin of [
        'https://console.example.com',
        'https://evil.console.example.com:8443',
        'https://example.com',
      ]) {
        t.is(
          (await verifyAuthentication(client, passkey.authenticate(await signInOptions(client), { origin }))).status,
          400,
        );
      }
      const answer = await verifyAuthentication(client, passkey.authenticate(await signInOptions(client)));
      t.is(answer.status, 200);
      t.regex(
        answer.headers.getSetCookie()[0]!,
        /^__Host-svc_session_[0-9a-f]{8}=.*; HttpOnly; SameSite=Lax; Secure; /,
      );
    } finally {
      await other.stop();
    }
  },
);
