// What a kill of each process of a node, and a restart of its supervisor, do to those who connect meanwhile. Real processes.
import { join } from 'node:path';
import test from 'ava';
import { heldSockets } from '../../agents/edge/supervise/holder.ts';
import { freePort } from '../../bench/lib/servers.ts';
import { eventually } from '../helpers/eventually.ts';
import { SupervisedEdge, Visitors } from '../helpers/supervised-edge.ts';

const AT_A_TIME = 8;
const served = (_: unknown, response: { end(text: string): void }): void => response.end('the site');

test.serial('who connects while Caddy is killed is served by the next process', async (t) => {
  const edge = await SupervisedEdge.make(t, served);
  await edge.start();
  const visitors = new Visitors(t, edge, AT_A_TIME);
  await visitors.more(50);
  const kills = 2;
  for (let round = 0; round < kills; round++) {
    await edge.kill('caddy');
    await visitors.more(50);
  }
  await visitors.stop();
  t.false(visitors.failures.includes('ECONNREFUSED'), visitors.failures.join());
  t.true(visitors.failures.length <= kills * AT_A_TIME, `only what was in flight failed: ${visitors.failures.join()}`);
  t.regex(edge.output, /"child":"caddy","signal":"SIGKILL","inMs":0\b/, 'the first death has no pause');
});

test.serial('a killed agent and a killed holder end nothing, and the next holder gets the ports', async (t) => {
  const edge = await SupervisedEdge.make(t, served);
  await edge.start();
  const visitors = new Visitors(t, edge, AT_A_TIME);
  await visitors.more(50);
  await edge.kill('agent');
  await edge.kill('holder');
  await visitors.more(50);
  await edge.held();
  t.deepEqual(visitors.failures, [], 'nobody noticed');
  await edge.kill('caddy');
  await visitors.more(50);
  await visitors.stop();
  t.false(visitors.failures.includes('ECONNREFUSED'), visitors.failures.join());
});

test.serial('with a holder of its own, a stopped or killed supervisor keeps nobody out', async (t) => {
  const edge = await SupervisedEdge.make(t, served);
  const path = join(edge.folder, 'holder', 'hold.sock');
  const holder = await edge.hold(path);
  await edge.start('--hold-socket', path);
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await edge.end(signal);
    const early = signal === 'SIGTERM' ? edge.ask() : undefined;
    await edge.start('--hold-socket', path);
    if (early) t.is(await early, 200, 'who came in between waited');
    t.is(await edge.ask(), 200);
  }
  t.is(holder.exitCode, null);
  await edge.end('SIGTERM');
  t.deepEqual(await heldSockets(path), [{ network: 'tcp', address: `127.0.0.1:${edge.port}` }]);
});

test.serial('a holder that is replaced hands its sockets on while visitors come', async (t) => {
  const edge = await SupervisedEdge.make(t, served);
  const path = join(edge.folder, 'holder', 'hold.sock');
  const first = await edge.hold(path);
  await edge.start('--hold-socket', path);
  const visitors = new Visitors(t, edge, AT_A_TIME);
  await visitors.more(50);
  const gone = new Promise((resolve) => first.once('exit', resolve));
  await edge.hold(path);
  t.is(await gone, 0);
  await visitors.more(50);
  t.deepEqual(visitors.failures, []);
  await edge.kill('caddy');
  await visitors.more(50);
  await visitors.stop();
  t.false(visitors.failures.includes('ECONNREFUSED'), visitors.failures.join());
});

test.serial('an address that the node does not listen on any more is closed', async (t) => {
  const edge = await SupervisedEdge.make(t, served);
  const path = join(edge.folder, 'holder', 'hold.sock');
  await edge.hold(path);
  await edge.start('--hold-socket', path);
  await edge.end('SIGTERM');
  const other = await freePort();
  edge.launch('--hold-socket', path, '--http-listen', `127.0.0.1:${other}`);
  await eventually(() => edge.serves(other), { timeoutMs: 60_000, what: 'the other port to be served' });
  await eventually(
    async () =>
      JSON.stringify(await heldSockets(path)) === JSON.stringify([{ network: 'tcp', address: `127.0.0.1:${other}` }]),
    { timeoutMs: 60_000, what: 'the former port to be closed' },
  );
  await t.throwsAsync(edge.ask(), { code: 'ECONNREFUSED' });
});
