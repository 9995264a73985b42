// Log settings of a site through /api/v1: what is taken and kept, and what nodes get of it.
import { fromBinary, toJson } from '@bufbuild/protobuf';
import test from 'ava';
import { DEFAULT_LOGS } from '../../contract/resources/site-logs.ts';
import { SiteLogsSchema } from '../../proto/gen/svc/config/v1/logs_pb.js';
import { endSampling } from '../../services/logs/end-sampling.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let made = 0;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('logged');
});
test.after.always(() => running?.stop());

const newSite = async (): Promise<string> => (await api.site(clusterId, `logged-${made++}.example`)).id;

test('log settings of a site are replaced as a whole, and nodes that log nothing get none', async (t) => {
  const id = await newSite();
  const path = `/sites/${id}/logs/settings`;
  t.deepEqual(await api.ok('GET', path), { siteId: id, ...DEFAULT_LOGS, updatedAt: null });
  const given = {
    sampleRate: 100,
    logBlocked: true,
    logQuery: true,
    logHeaders: ['Accept-Language', 'accept-language', 'DNT'],
  };
  const saved = await api.ok('PUT', path, { ...given, expectedUpdatedAt: null });
  t.like(saved, { ...given, logHeaders: ['accept-language', 'dnt'], logPeer: false });
  const key = { cluster_id: clusterId, kind: 'site-logs', resource_id: id, to_revision: null };
  t.deepEqual((await api.sql('config_entry').where(key).first()).features, ['access-logs-v1']);
  t.deepEqual(toJson(SiteLogsSchema, fromBinary(SiteLogsSchema, (await api.entry(clusterId, 'site-logs', id))!)), {
    sampleRate: 100,
    logBlocked: true,
    logQuery: true,
    headers: ['accept-language', 'dnt'],
  });
  t.like(await api.ok('PUT', path, {}), { ...DEFAULT_LOGS });
  t.falsy(await api.entry(clusterId, 'site-logs', id));
  t.like(await api.call('PUT', path, { expectedUpdatedAt: null }), {
    status: 409,
    body: { code: 'UPDATED_AT_MISMATCH' },
  });
});

test('headers that carry credentials, and values beyond the limits, are refused', async (t) => {
  const path = `/sites/${await newSite()}/logs/settings`;
  for (const name of ['Authorization', 'cookie', 'Proxy-Authorization']) {
    const refused = await api.call('PUT', path, { sampleRate: 1, logHeaders: [name] });
    t.like(refused, { status: 400, body: { code: 'LOG_HEADER_FORBIDDEN', data: { name: name.toLowerCase() } } });
  }
  for (const body of [
    { sampleRate: 10_001 },
    { sampleRate: -1 },
    { sampleRate: 0.5 },
    { logHeaders: Array.from({ length: 9 }, (_, index) => `x-${index}`) },
    { logHeaders: ['a b'] },
    { logHeaders: [''] },
    { logCookies: true },
  ])
    t.like(await api.call('PUT', path, body), { status: 400 }, JSON.stringify(body));
  t.like(await api.call('GET', '/sites/none/logs/settings'), { status: 404, body: { code: 'SITE_NOT_FOUND' } });
  t.like(await api.call('PUT', '/sites/none/logs/settings', {}), { status: 404, body: { code: 'SITE_NOT_FOUND' } });
});

test('sampling until a time ends then, and everything else stays', async (t) => {
  const id = await newSite();
  const path = `/sites/${id}/logs/settings`;
  const day = 86_400_000;
  for (const ahead of [-1000, 31 * day]) {
    const refused = await api.call('PUT', path, {
      sampleRate: 1,
      sampleUntil: new Date(Date.now() + ahead).toISOString(),
    });
    t.like(refused, { status: 400, body: { code: 'LOG_UNTIL_INVALID' } });
  }
  const until = new Date(Date.now() + 3_600_000).toISOString();
  t.like(await api.ok('PUT', path, { sampleRate: 0, sampleUntil: until }), { sampleUntil: null });
  t.like(await api.ok('PUT', path, { sampleRate: 100, sampleUntil: until, logQuery: true }), { sampleUntil: until });
  const { runtime } = running.running;
  const signal = new AbortController().signal;
  await endSampling(runtime, signal, new Date(Date.parse(until) - 1));
  t.like(await api.ok('GET', path), { sampleRate: 100, sampleUntil: until });
  await endSampling(runtime, signal, new Date(until));
  t.like(await api.ok('GET', path), { sampleRate: 0, sampleUntil: null, logQuery: true });
  const entry = toJson(SiteLogsSchema, fromBinary(SiteLogsSchema, (await api.entry(clusterId, 'site-logs', id))!));
  t.deepEqual(entry, { logQuery: true });
});
