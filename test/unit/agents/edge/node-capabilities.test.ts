import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { renderCaddyConfig } from '../../../../agents/edge/caddy/caddy-config.ts';
import { AGENT_CAPABILITIES, NodeCapabilities } from '../../../../agents/edge/run/node-capabilities.ts';
import { CAPABILITIES } from '../../../../contract/capabilities.ts';
import { temporaryFolder } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';

function setUp(t: ExecutionContext) {
  const path = join(temporaryFolder(t), 'capabilities.json');
  const { log, lines } = memoryLog();
  return { path, lines, start: () => new NodeCapabilities(path, log) };
}

test('before any answer of the data plane a node reports only what its agent does', (t) => {
  const { start } = setUp(t);
  const capabilities = start();
  let works = false;
  capabilities.offer('kernel-ban-v1', () => works);
  t.deepEqual([...capabilities.names()], ['canary-v1', 'feeds-v1', 'metrics-v1', 'partial-config-v1']);
  t.false(capabilities.has(['metrics-v1', 'kernel-ban-v1']));
  works = true;
  t.deepEqual([...capabilities.names()], ['canary-v1', 'feeds-v1', 'kernel-ban-v1', 'metrics-v1', 'partial-config-v1']);
  t.true(capabilities.has(['metrics-v1', 'kernel-ban-v1']));
});

test('a node can do what its data plane says it can, and what its agent adds', (t) => {
  const { start } = setUp(t);
  const capabilities = start();
  let works = true;
  capabilities.offer('kernel-ban-v1', () => works);
  capabilities.observe(['waf-v1', 'bans-v1', 'bans-v1']);
  t.deepEqual(
    [...capabilities.names()],
    ['bans-v1', 'canary-v1', 'feeds-v1', 'kernel-ban-v1', 'metrics-v1', 'partial-config-v1', 'waf-v1'],
  );
  capabilities.observe(['bans-v1']);
  works = false;
  t.deepEqual([...capabilities.names()], ['bans-v1', 'canary-v1', 'feeds-v1', 'metrics-v1', 'partial-config-v1']);
});

test('the last answer holds while the data plane is silent, across a restart of the agent too', (t) => {
  const { start } = setUp(t);
  start().observe(['bans-v1', 'domains-v2']);
  const again = start();
  again.observe([]);
  t.deepEqual(
    [...again.names()],
    ['bans-v1', 'canary-v1', 'domains-v2', 'feeds-v1', 'metrics-v1', 'partial-config-v1'],
  );
});

test('what is no name is not reported', (t) => {
  const { start } = setUp(t);
  const capabilities = start();
  capabilities.observe(['bans-v1', 'a b', '', 'x'.repeat(65)]);
  t.deepEqual([...capabilities.names()], ['bans-v1', 'canary-v1', 'feeds-v1', 'metrics-v1', 'partial-config-v1']);
});

test('a file that cannot be read or written costs nothing but the memory of the last answer', (t) => {
  const { path, lines, start } = setUp(t);
  for (const text of ['{', '{"a":1}', '"text"', '[1, null]']) {
    writeFileSync(path, text);
    t.deepEqual([...start().names()], ['canary-v1', 'feeds-v1', 'metrics-v1', 'partial-config-v1'], text);
  }
  rmSync(path);
  mkdirSync(path);
  const capabilities = start();
  capabilities.observe(['bans-v1']);
  capabilities.observe(['bans-v1']);
  t.deepEqual([...capabilities.names()], ['bans-v1', 'canary-v1', 'feeds-v1', 'metrics-v1', 'partial-config-v1']);
  t.is(lines.filter((line) => line.includes('not stored')).length, 1);
  rmSync(path, { recursive: true });
  capabilities.observe(['bans-v1']);
  t.deepEqual(JSON.parse(readFileSync(path, 'utf8')), ['bans-v1']);
});

test('the data plane is told what the agent can do, and the console knows all of it', (t) => {
  const config = renderCaddyConfig({
    stateDir: '/s',
    socketPath: '/s/run/edge.sock',
    httpListen: [':80'],
    httpsListen: [],
    banCapacity: 1,
    banMaxMib: 1,
    proxyPeers: [],
    agentCapabilities: AGENT_CAPABILITIES,
  });
  t.deepEqual((config as { apps: { svc: { agent_capabilities: string[] } } }).apps.svc.agent_capabilities, [
    'kernel-ban-v1',
    'metrics-v1',
  ]);
  for (const name of AGENT_CAPABILITIES) t.true(name in CAPABILITIES);
});
