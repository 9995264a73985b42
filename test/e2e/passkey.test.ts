// A passkey in a real Chromium with a virtual authenticator, against a running console.
import test from 'ava';
import pg from 'pg';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { freePort } from '../../bench/lib/servers.ts';

import { startBrowser } from '../helpers/browser.ts';
import { startTestConsole, TEST_OPERATOR, type TestConsole } from '../helpers/console.ts';

const { email, password } = TEST_OPERATOR;

let running: TestConsole;
let origin: string;
let browser: Browser;
let database: pg.Pool;

test.before(async () => {
  const port = await freePort();
  origin = `http://localhost:${port}`;
  running = await startTestConsole({ env: { PORT: String(port), SVC_PUBLIC_URL: origin } });
  database = new pg.Pool({ connectionString: running.databaseUrl, max: 2 });
  browser = await startBrowser();
});

test.after.always(async () => {
  await browser?.close();
  await database?.end();
  await running?.stop();
});

interface Person {
  context: BrowserContext;
  page: Page;
  authenticator: CDPSession;
  authenticatorId: string;
}

interface Fetched {
  status: number;
  body: { code?: string; user?: { email: string }; name?: string; id?: string } | null;
}

/** The part of a page's globals that is used here: this program is checked without the DOM's types. */
interface PageGlobals {
  document: { cookie: string };
  navigator: { credentials: Record<'create' | 'get', (options: { publicKey: unknown }) => Promise<Credential>> };
  PublicKeyCredential: Record<
    'parseCreationOptionsFromJSON' | 'parseRequestOptionsFromJSON',
    (json: unknown) => unknown
  >;
}

interface Credential {
  toJSON(): unknown;
}

/** Someone at the console's page, with an authenticator that is built into the machine. */
async function person(address = origin): Promise<Person> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${address}/`);
  const authenticator = await context.newCDPSession(page);
  await authenticator.send('WebAuthn.enable');
  const { authenticatorId } = await authenticator.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { context, page, authenticator, authenticatorId };
}

/** What the page's own scripts would do: the browser adds cookies and Origin. */
const post = ({ page }: Person, path: string, body: object = {}): Promise<Fetched> =>
  page.evaluate(
    async ([to, sent]) => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`/api/auth${to}`, { method: 'POST', headers, body: JSON.stringify(sent) });
      return { status: response.status, body: (await response.json()) as Fetched['body'] };
    },
    [path, body] as const,
  );

const get = ({ page }: Person, path: string): Promise<Fetched> =>
  page.evaluate(async (from) => {
    const response = await fetch(`/api/auth${from}`);
    return { status: response.status, body: (await response.json()) as Fetched['body'] };
  }, path);

/** The browser's side of the ceremony: what @simplewebauthn/browser does, with the browser's own conversions. */
const ceremony = ({ page }: Person, kind: 'create' | 'get'): Promise<unknown> =>
  page.evaluate(async (which) => {
    const { navigator, PublicKeyCredential } = globalThis as unknown as PageGlobals;
    const path = which === 'create' ? 'generate-register-options' : 'generate-authenticate-options';
    const parse = which === 'create' ? 'parseCreationOptionsFromJSON' : 'parseRequestOptionsFromJSON';
    const options = await (await fetch(`/api/auth/passkey/${path}`)).json();
    const made = await navigator.credentials[which]({ publicKey: PublicKeyCredential[parse](options) });
    return made.toJSON();
  }, kind);

const register = async (someone: Person, name: string) =>
  post(someone, '/passkey/verify-registration', { response: await ceremony(someone, 'create'), name });
const signIn = async (someone: Person) =>
  post(someone, '/passkey/verify-authentication', { response: await ceremony(someone, 'get') });

test.serial('an operator registers a passkey and signs in with it alone', async (t) => {
  const someone = await person();
  t.like(await post(someone, '/sign-in/email', { email, password }), { status: 200 });
  t.like(await register(someone, 'this laptop'), { status: 200, body: { name: 'this laptop' } });
  t.like(await get(someone, '/passkey/list-user-passkeys'), { body: [{ name: 'this laptop', lastUsedAt: null }] });
  const { credentials } = await someone.authenticator.send('WebAuthn.getCredentials', {
    authenticatorId: someone.authenticatorId,
  });
  t.like(credentials, [{ isResidentCredential: true, rpId: 'localhost' }]);

  await post(someone, '/sign-out');
  t.is((await get(someone, '/get-session')).body, null);
  for (let time = 0; time < 2; time++) {
    t.like(await signIn(someone), { status: 200, body: { user: { email } } });
    t.like(await get(someone, '/get-session'), { body: { user: { email } } });
    await post(someone, '/sign-out');
  }
  const { rows } = await database.query(
    `select metadata from audit_entry where action = 'auth.sign_in' order by id desc`,
  );
  t.like(rows[0].metadata, { method: 'passkey' });
  await someone.context.close();
});

test.serial('the browser keeps the session cookie from scripts and from other sites', async (t) => {
  const someone = await person();
  await post(someone, '/sign-in/email', { email, password });
  const cookies = await someone.context.cookies();
  t.is(cookies.length, 1);
  t.like(cookies[0], { httpOnly: true, sameSite: 'Lax', path: '/', domain: 'localhost' });
  t.is(await someone.page.evaluate(() => (globalThis as unknown as PageGlobals).document.cookie), '');
  await someone.context.close();
});

test.serial('a second registration on the same authenticator is refused by the browser', async (t) => {
  const someone = await person();
  await post(someone, '/sign-in/email', { email, password });
  t.is((await register(someone, 'once')).status, 200);
  await t.throwsAsync(register(someone, 'twice'), { message: /InvalidStateError|previously registered/ });
  await someone.context.close();
});

test.serial('without user verification nothing is registered', async (t) => {
  const someone = await person();
  await post(someone, '/sign-in/email', { email, password });
  const { authenticatorId } = someone;
  await someone.authenticator.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
  await t.throwsAsync(register(someone, 'nobody'), { message: /NotAllowedError/ });
  await someone.context.close();
});

test.serial('a deleted passkey no longer signs in, though the authenticator still has it', async (t) => {
  const someone = await person();
  await post(someone, '/sign-in/email', { email, password });
  const { body } = await register(someone, 'lost phone');
  t.like(await post(someone, '/passkey/delete-passkey', { id: body?.id }), { status: 200 });
  await post(someone, '/sign-out');
  t.like(await signIn(someone), { status: 400, body: { code: 'PASSKEY_REFUSED' } });
  t.is((await get(someone, '/get-session')).body, null);
  await someone.context.close();
});

test.serial('at another address than the public one the browser refuses, and so does the console', async (t) => {
  const someone = await person(origin.replace('localhost', '127.0.0.1'));
  await t.throwsAsync(ceremony(someone, 'get'), { message: /SecurityError|domain/i });
  t.like(await post(someone, '/sign-in/email', { email, password }), { status: 403 });
  await someone.context.close();
});
