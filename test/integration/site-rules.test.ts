// Rules of sites: what is saved and answered, what is refused and how, and what of it nodes get.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { SiteRulesSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let count = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('ruled');
});
test.after.always('stop', () => running?.stop());

const newSite = async (more: Body = {}): Promise<string> => (await api.site(clusterId, `r${count++}.example`, more)).id;
const read = (id: string): Promise<Body> => api.ok('GET', `/sites/${id}/rules`);
const save = (id: string, rules: Body[], more: Body = {}): Promise<Body> =>
  api.ok('PUT', `/sites/${id}/rules`, { rules, ...more });
const entryOf = async (id: string) => {
  const body = await api.entry(clusterId, 'site-rules', id);
  return body && fromBinary(SiteRulesSchema, body);
};

const BLOCK = { name: 'Block', phase: 'waf-custom', expression: 'ip.src eq 192.0.2.1', action: { kind: 'block' } };

test('a site has no rules until some are saved; what is left out is filled in', async (t) => {
  const id = await newSite();
  const { updatedAt, ...empty } = await read(id);
  t.deepEqual(empty, { siteId: id, rules: [], warnings: [] });
  const saved = await save(id, [BLOCK]);
  t.like(saved.rules[0], { ...BLOCK, enabled: false, action: { kind: 'block', statusCode: 403 } });
  t.true(saved.updatedAt > updatedAt);
  t.is(saved.revision, null);
  t.is(await entryOf(id), undefined);
  const enabled = await save(id, [{ ...saved.rules[0], enabled: true }]);
  t.is(enabled.rules[0].id, saved.rules[0].id);
  t.truthy(enabled.revision);
  const { revision, ...answer } = enabled;
  t.deepEqual(await read(id), answer);
  const entry = await entryOf(id);
  t.is(entry?.rules[0]?.id, saved.rules[0].id);
  t.is(entry?.rules[0]?.action.case, 'block');
  const again = await save(id, enabled.rules);
  t.deepEqual([again.revision, again.updatedAt], [null, enabled.updatedAt]);
});
