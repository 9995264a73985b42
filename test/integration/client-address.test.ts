// Whose sign-in it was: what the audit log shows behind reverse proxies, and what the log says of a forgotten one.
import test from 'ava';
import pg from 'pg';
import { startTestConsoleProcess } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';

const WRONG = { email: 'nobody@example.com', password: 'wrong' };

test('X-Forwarded-For from a peer that is not trusted is ignored, and noted once with the address to add', async (t) => {
  const running = await startTestConsoleProcess({ env: { LOG_LEVEL: 'info' } });
  const database = new pg.Client({ connectionString: running.databaseUrl });
  await database.connect();
  try {
    const attempt = (ip: string) =>
      running.client.request('POST', '/api/auth/sign-in/email', WRONG, { 'x-forwarded-for': ip, 'x-real-ip': ip });
    for (const ip of ['198.51.100.1', '198.51.100.2', '127.0.0.1, 198.51.100.3']) t.is((await attempt(ip)).status, 401);
    const { rows } = await database.query(`select distinct ip from audit_entry where action = 'auth.sign_in_failed'`);
    t.deepEqual(rows, [{ ip: '127.0.0.1' }]);
    const lines = () =>
      running
        .log()
        .split('\n')
        .filter((line) => line.includes('SVC_TRUSTED_PROXIES'));
    await eventually(() => lines().length > 0);
    t.is(lines().length, 1);
    t.like(JSON.parse(lines()[0]!), { level: 'warn', peer: '127.0.0.1', add: '127.0.0.1' });
  } finally {
    await database.end();
    await running.stop();
  }
});

test('from trusted proxies the audit log has the first address from the right that is not theirs', async (t) => {
  const running = await startTestConsoleProcess({ env: { SVC_TRUSTED_PROXIES: '127.0.0.1,2001:db8::/32' } });
  const database = new pg.Client({ connectionString: running.databaseUrl });
  await database.connect();
  try {
    for (const [forwarded, expected] of [
      ['198.51.100.1', '198.51.100.1'],
      ['203.0.113.9, 198.51.100.1', '198.51.100.1'],
      ['198.51.100.1, 2001:DB8::7, ::ffff:127.0.0.1', '198.51.100.1'],
      ['2001:0470::00ff, 2001:db8::1', '2001:470::ff'],
      ['198.51.100.1, unknown', '127.0.0.1'],
    ] as const) {
      await running.client.request('POST', '/api/auth/sign-in/email', WRONG, { 'x-forwarded-for': forwarded });
      const { rows } = await database.query('select ip from audit_entry order by id desc limit 1');
      t.is(rows[0].ip, expected, forwarded);
    }
    t.false(running.log().includes('is no trusted proxy'));
  } finally {
    await database.end();
    await running.stop();
  }
});
