import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { EdgeClient } from '../../../../../agents/edge/caddy/edge-client.ts';
import { SESSION_TICKET_KEYS } from '../../../../../agents/edge/keys/session-ticket-keys.ts';
import { SharedKeys } from '../../../../../agents/edge/keys/shared-keys.ts';
import { NodeChannel } from '../../../../../agents/kit/channel-client.ts';
import { TestAuthority } from '../../helpers/authority.ts';
import { TestCaddy } from '../../helpers/caddy.ts';
import { TestConsole } from '../../helpers/console.ts';
import { testIdentity } from '../../helpers/feeds.ts';
import { temporaryFolder, until } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';
import { sessionTicketKeys } from '../../helpers/security.ts';

async function setUp(t: ExecutionContext) {
  const folder = temporaryFolder(t);
  const { log, lines } = memoryLog();
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  const caddy = new TestCaddy(join(folder, 'edge.sock'));
  await caddy.start();
  const channel = new NodeChannel(await testIdentity(testConsole));
  const client = new EdgeClient(caddy.socket);
  const path = join(folder, 'session-ticket-keys.json');
  const start = () => {
    const keys = new SharedKeys(SESSION_TICKET_KEYS, {
      path,
      clusterId: 'c',
      client,
      log,
      channel: () => channel,
      pushed: () => undefined,
    });
    t.teardown(() => keys.stop());
    return keys;
  };
  t.teardown(async () => {
    client.close();
    channel.close();
    await testConsole.stop();
    await caddy.kill();
  });
  return { lines, testConsole, caddy, start, client };
}

test('keys of session tickets reach each process, follow a rotation, and hold without the console', async (t) => {
  const { lines, testConsole, caddy, start, client } = await setUp(t);
  testConsole.ticketKeys = sessionTicketKeys(1);
  const keys = start();
  keys.onConnected();
  keys.onStatus(await client.getStatus());
  await until(t, 'the first', () => keys.version === 1n);
  t.deepEqual(caddy.ticketKeys, sessionTicketKeys(1));
  testConsole.ticketKeys = sessionTicketKeys(2);
  keys.onVersion(2n);
  await until(t, 'rotated', () => keys.version === 2n);
  t.is(caddy.ticketKeys?.version, 2n);
  await keys.stop();
  await testConsole.stop();
  await caddy.restart('second');
  const offline = start();
  offline.onStatus(await client.getStatus());
  await until(t, 'from disk', () => offline.version === 2n);
  t.deepEqual(caddy.ticketKeys, sessionTicketKeys(2));
  const secret = Buffer.from(sessionTicketKeys(2).current);
  for (const encoding of ['base64', 'hex', 'latin1'] as const)
    t.false(lines.some((line) => line.includes(secret.toString(encoding))));
});

test('a data plane that knows nothing of HTTPS is not given its keys', async (t) => {
  const { testConsole, caddy, start, client } = await setUp(t);
  caddy.capabilities = ['bans-v1'];
  testConsole.ticketKeys = sessionTicketKeys(1);
  const keys = start();
  keys.onConnected();
  await until(t, 'fetched', () => testConsole.calls.includes('getSessionTicketKeys'));
  keys.onStatus(await client.getStatus());
  caddy.capabilities = ['https-v1'];
  t.false(caddy.calls.includes('setSessionTicketKeys'));
  keys.onStatus(await client.getStatus());
  await until(t, 'the next version of it is', () => keys.version === 1n);
});
