import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import test, { type ExecutionContext } from 'ava';
import { AcmeAnswers } from '../../../../../agents/edge/acme/acme-answers.ts';
import { EdgeClient } from '../../../../../agents/edge/caddy/edge-client.ts';
import { ServerClock } from '../../../../../agents/edge/lib/server-clock.ts';
import { decodeEvent, NodeChannel } from '../../../../../agents/kit/channel-client.ts';
import { keepWatching } from '../../../../../agents/kit/keep-watching.ts';
import {
  AcmeBatchSchema,
  type AcmePosition,
  AcmePositionSchema,
  type AcmeToken,
  AcmeTokenSchema,
} from '../../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { TestAuthority } from '../../helpers/authority.ts';
import { TestCaddy } from '../../helpers/caddy.ts';
import { TestConsole } from '../../helpers/console.ts';
import { testIdentity } from '../../helpers/feeds.ts';
import { temporaryFolder, until } from '../../helpers/folder.ts';
import { memoryLog } from '../../helpers/log.ts';

function answer(host: string, token: string, expiresAtMs = Date.now() + 600_000): AcmeToken {
  return create(AcmeTokenSchema, {
    host,
    token,
    keyAuthorization: `${token}.thumbprint`,
    expiresAtMs: BigInt(expiresAtMs),
  });
}

async function setUp(t: ExecutionContext, clockAheadMs = 0) {
  const folder = temporaryFolder(t);
  const { log, lines } = memoryLog();
  const testConsole = await TestConsole.start({ authority: await TestAuthority.create() });
  testConsole.clockAheadMs = clockAheadMs;
  const caddy = new TestCaddy(join(folder, 'edge.sock'));
  await caddy.start();
  const channel = new NodeChannel(await testIdentity(testConsole));
  const client = new EdgeClient(caddy.socket);
  const start = () => {
    const clock = new ServerClock();
    const applied: AcmePosition[] = [];
    const stopping = new AbortController();
    const acme = new AcmeAnswers({
      client,
      clock,
      log,
      channel: () => channel,
      applied: (position) => applied.push(position),
    });
    const watching = keepWatching({
      log,
      signal: stopping.signal,
      delay: () => 20,
      open: (signal) => channel.watch(acme.position ? { acme: acme.position } : {}, signal),
      connected: () => acme.onConnected(),
      disconnected: () => undefined,
      onEvent: (event) => {
        const decoded = decodeEvent(event);
        if (decoded.case === 'acmeBatch') acme.onBatch(decoded.value);
        if (decoded.case !== 'target') return;
        clock.observe(decoded.value.serverTimeMs);
        acme.onTarget(decoded.value.acme!);
      },
    });
    const stop = async () => {
      stopping.abort();
      await Promise.all([watching, acme.stop()]);
    };
    t.teardown(stop);
    const status = async () => acme.onStatus(await client.getStatus());
    const reached = () => until(t, 'applied', () => acme.applied?.sequence === testConsole.acmeSequence);
    return { acme, applied, stop, status, reached };
  };
  t.teardown(async () => {
    client.close();
    channel.close();
    await testConsole.stop();
    await caddy.kill();
  });
  return { lines, testConsole, caddy, start, folder };
}

test('what authorities ask for is answered after a push, by each process, and no more once it is over', async (t) => {
  const { testConsole, caddy, start, lines } = await setUp(t);
  testConsole.changeAcme([answer('a.example', 'one')]);
  const agent = start();
  await agent.status();
  await agent.reached();
  t.deepEqual([...caddy.acmeTokens.keys()], ['a.example/one']);
  testConsole.changeAcme([answer('b.example', 'two')], [answer('a.example', 'one')]);
  await agent.reached();
  t.deepEqual([...caddy.acmeTokens.keys()], ['b.example/two']);
  t.is(caddy.acmeTokens.get('b.example/two')?.keyAuthorization, 'two.thumbprint');
  t.is(testConsole.calls.filter((call) => call === 'getAcmeTokens').length, 1, 'a push needs no question');
  await caddy.restart('second');
  await agent.status();
  await until(t, 'given again', () => caddy.acmeTokens.has('b.example/two'));
  await agent.stop();
  // Another agent on the same process.
  testConsole.changeAcme([], [answer('b.example', 'two')]);
  const next = start();
  await next.status();
  await next.reached();
  t.is(caddy.acmeTokens.size, 0);
  t.false(lines.some((line) => line.includes('thumbprint')));
});

test('a process keeps what it answers until an agent that is new has heard of the console', async (t) => {
  const { testConsole, caddy, start } = await setUp(t);
  testConsole.changeAcme([answer('a.example', 'one')]);
  const first = start();
  await first.status();
  await first.reached();
  await first.stop();
  let isHeld = true;
  testConsole.onCall = (method) => {
    if (isHeld && method === 'getAcmeTokens') throw new ConnectError('not now', Code.Unavailable);
  };
  const second = start();
  await second.status();
  await until(t, 'refused', () => second.acme.message.includes('not now'));
  t.true(caddy.acmeTokens.has('a.example/one'));
  t.is(second.acme.applied, undefined);
  isHeld = false;
  second.acme.onConnected();
  await second.reached();
  t.is(second.acme.message, '');
});

test('a gap, another history and a batch that comes twice lead to what the console has', async (t) => {
  const { testConsole, caddy, start } = await setUp(t);
  testConsole.changeAcme([answer('a.example', 'one')]);
  const agent = start();
  await agent.status();
  await agent.reached();
  testConsole.pushing = false;
  testConsole.changeAcme([answer('b.example', 'two')]);
  testConsole.pushing = true;
  testConsole.changeAcme([answer('c.example', 'three')]);
  await agent.reached();
  t.deepEqual([...caddy.acmeTokens.keys()].sort(), ['a.example/one', 'b.example/two', 'c.example/three']);
  const { position } = agent.acme;
  agent.acme.onBatch(
    create(AcmeBatchSchema, {
      epoch: testConsole.acmeEpoch,
      from: 1n,
      to: 2n,
      removed: [answer('a.example', 'one')],
    }),
  );
  t.is(agent.acme.position, position);
  testConsole.acmeEpoch++;
  testConsole.acmeSequence = 0n;
  testConsole.acmeTokens.clear();
  testConsole.changeAcme([answer('d.example', 'four')]);
  await until(t, 'the other history', () => agent.acme.applied?.epoch === testConsole.acmeEpoch);
  t.deepEqual([...caddy.acmeTokens.keys()], ['d.example/four']);
  agent.acme.onTarget(create(AcmePositionSchema));
  t.is(agent.acme.applied?.epoch, testConsole.acmeEpoch, 'a console without any of it changes nothing');
});

test('an answer ends by the clock of this machine when that of the console says so', async (t) => {
  const hour = 3_600_000;
  const { testConsole, caddy, start } = await setUp(t, hour);
  const before = Date.now();
  testConsole.changeAcme([answer('a.example', 'one', before + hour + 600_000), answer('b.example', 'old', before)]);
  const agent = start();
  await agent.status();
  await agent.reached();
  t.deepEqual([...caddy.acmeTokens.keys()], ['a.example/one'], 'what ended before is not given');
  const ends = Number(caddy.acmeTokens.get('a.example/one')!.expiresAtMs);
  t.true(Math.abs(ends - before - 600_000) < 300_000);
});

test('what was not taken is given whole with the next sign of life', async (t) => {
  const { testConsole, caddy, start } = await setUp(t);
  testConsole.changeAcme([answer('a.example', 'one')]);
  const agent = start();
  await agent.status();
  await agent.reached();
  await caddy.kill();
  testConsole.changeAcme([answer('b.example', 'two')]);
  await until(t, 'said', () => agent.acme.message.includes('does not accept HTTP-01 responses'));
  t.is(agent.acme.applied, undefined);
  await caddy.start();
  await agent.status();
  await agent.reached();
  t.deepEqual([...caddy.acmeTokens.keys()].sort(), ['a.example/one', 'b.example/two']);
  t.is(agent.acme.message, '');
});

test('a data plane that answers nobody is given nothing', async (t) => {
  const { testConsole, caddy, start } = await setUp(t);
  caddy.capabilities = ['https-v1'];
  testConsole.changeAcme([answer('a.example', 'one')]);
  const agent = start();
  await agent.status();
  await until(t, 'held', () => agent.acme.position?.sequence === 1n);
  t.is(agent.acme.applied, undefined);
  t.false(caddy.calls.includes('setAcmeTokens'));
});
