// The lines of docs/sign-in.md, run as they stand there against a console.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { startTestConsole, TEST_OPERATOR } from '../helpers/console.ts';
import { documentBlocks, documentLines, root, runShell } from '../helpers/documents.ts';
import { temporaryFolder } from '../helpers/temporary-folder.ts';

const DOCUMENT = 'docs/sign-in.md';
const NEW_PASSWORD = 'a password nobody knows yet';

/** Stands for the Debian program of this name: the code of a base32 secret. */
const OATHTOOL = `#!${process.execPath}
import('${join(root, 'test/helpers/authenticator.ts')}').then(({ totpCode }) =>
  console.log(totpCode('otpauth://totp/x?secret=' + process.argv.at(-1))),
);
`;

test('the lines sign in, turn the second step on and off, change the password and recover', async (t) => {
  const running = await startTestConsole();
  t.teardown(() => running.stop());
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'oathtool'), OATHTOOL);
  chmodSync(join(folder, 'oathtool'), 0o755);
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    CONSOLE: running.url,
    EMAIL: TEST_OPERATOR.email,
    PASSWORD: TEST_OPERATOR.password,
    NEW_PASSWORD,
    DATABASE_URL: running.databaseUrl,
  };
  t.deepEqual(documentBlocks(DOCUMENT), ['session', 'two-factor', 'password', 'recover']);
  const shown = await runShell(documentLines(DOCUMENT, 'session', 'two-factor', 'password'), env, folder);
  t.like(JSON.parse(shown.lines[0]!), { initialized: true, publicUrl: 'http://localhost:3000' });
  t.is(shown.lines[1], TEST_OPERATOR.name);
  t.true(Date.parse(shown.lines[2]!) > Date.now());
  t.regex(shown.lines[3]!, /^otpauth:\/\/totp\//);
  t.regex(shown.lines[4]!, /^([2-9a-z]{5}-[2-9a-z]{5} ?){10}$/);
  // enabled, signed out without a line end, asked for the second step, signed in, off, changed
  const rest = ['true', '{"success":true}true', TEST_OPERATOR.name, 'true', TEST_OPERATOR.email];
  t.deepEqual(shown.lines.slice(5), rest, shown.output);
  const signIn = (password: string) =>
    running.client.request('POST', '/api/auth/sign-in/email', { email: TEST_OPERATOR.email, password });
  t.is((await signIn(NEW_PASSWORD)).status, 200);

  const recovered = await runShell(documentLines(DOCUMENT, 'recover'), {
    ...env,
    NEW_PASSWORD: TEST_OPERATOR.password,
  });
  t.regex(recovered.output, /the new password is in effect/);
  t.is((await signIn(TEST_OPERATOR.password)).status, 200);
});
