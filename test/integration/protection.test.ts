// Protection settings of sites, of the platform, and the template, as the specification's tables have them.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { CC_PRESETS, CHALLENGE_PRESETS, presetOf } from '../../contract/presets.ts';
import { DEFAULT_PROTECTION } from '../../contract/resources/protection.ts';
import { deliveryOf, situationNow } from '../../models/overview/delivery.ts';
import {
  CcTemplateSchema,
  ChallengeType,
  PlatformProtectionSchema,
  SiteProtectionSchema,
} from '../../proto/gen/svc/config/v1/protection_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusterId: string;
let quiet: string;
let count = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('protected');
  quiet = await api.cluster('without-followers');
});
test.after.always('stop', () => running?.stop());

const newSite = async (cluster = clusterId): Promise<string> => (await api.site(cluster, `p${count++}.example`)).id;
const pathOf = (id: string) => `/sites/${id}/protection`;
const read = (id: string): Promise<Body> => api.ok('GET', pathOf(id));
const patch = (id: string, change: Body): Promise<Body> => api.ok('PATCH', pathOf(id), change);
const entryOf = async (id: string) => {
  const body = await api.entry(clusterId, 'protection', id);
  return body && fromBinary(SiteProtectionSchema, body);
};
const featuresOf = async (kind: string, id: string): Promise<string[]> =>
  (await api.sql('config_entry').where({ kind, resource_id: id, to_revision: null }).first('features')).features;
const published = async (cluster: string, work: () => Promise<unknown>): Promise<string[]> => {
  const before = (await api.reasons(cluster)).length;
  await work();
  return (await api.reasons(cluster)).slice(before);
};

const STANDARD = {
  maxLevel: 'captcha',
  highPowInsteadOfCaptcha: false,
  windowSeconds: 10,
  siteQps: 1000,
  urlQps: 200,
  ipQps: 50,
  ipBanSeconds: 600,
  originErrorPercent: 50,
  originErrorMinRequests: 100,
  escalateAfterSeconds: 10,
  cooldownSeconds: 60,
};

test.serial('a new site has the defaults of the specification, and no entry', async (t) => {
  const id = await newSite();
  const { createdAt } = await api.ok('GET', `/sites/${id}`);
  t.deepEqual(await read(id), {
    siteId: id,
    underAttack: false,
    underAttackChallenge: 'js',
    passTtlSeconds: 1800,
    powDifficulty: 16,
    powHighDifficulty: 20,
    logJa4: false,
    cc: { enabled: false, followTemplate: false, ...STANDARD },
    ccTemplate: STANDARD,
    effectiveCc: null,
    platformUnderAttack: false,
    updatedAt: createdAt,
  });
  t.is(await entryOf(id), undefined);
});

test.serial('a change touches the given fields only, inside cc as well', async (t) => {
  const id = await newSite();
  const first = await patch(id, { passTtlSeconds: 900 });
  t.like(first, { passTtlSeconds: 900, powDifficulty: 16, underAttack: false });
  const second = await patch(id, { cc: { enabled: true, siteQps: 500 } });
  t.is(second.passTtlSeconds, 900);
  t.deepEqual(second.cc, { enabled: true, followTemplate: false, ...STANDARD, siteQps: 500 });
  t.deepEqual(second.effectiveCc, { ...STANDARD, siteQps: 500 });
  const third = await patch(id, { cc: { maxLevel: 'pow' } });
  t.deepEqual(third.effectiveCc, { ...STANDARD, siteQps: 500, maxLevel: 'pow' });
  t.true(Date.parse(third.updatedAt) > Date.parse(second.updatedAt));
  t.deepEqual(await read(id), third);
});

test.serial(
  'after a change a site is not live before its nodes run it, and the one that holds it back is named',
  async (t) => {
    const cluster = await api.cluster('delivered');
    const id = await newSite(cluster);
    const node = await api.node(cluster, 'edge', { features: ['ja4-v1'] });
    const run = async (more: Body = {}) => {
      const { epoch, revision } = await api.sql('cluster_head').where({ cluster_id: cluster }).first();
      await api
        .sql('node_state')
        .where({ node_id: node })
        .update({ epoch, revision, track: 'S', ...more });
    };
    const delivered = async (expected: Body, what: string): Promise<void> => {
      const found = await eventually(async () => {
        const { delivery } = await api.ok('GET', `/sites/${id}`);
        return delivery.state === expected.state && delivery;
      });
      t.like(found, { totalNodes: 1, servingNodes: 1, blocked: [], ...expected }, what);
    };
    const live = { state: 'live', currentNodes: 1 };
    const partial = { state: 'partial', currentNodes: 0 };
    const nodes = [{ id: node, name: 'edge' }];
    await run();
    await delivered(live, 'the node runs the site');
    await patch(id, { logJa4: true });
    t.is((await api.ok('GET', `/sites/${id}`)).delivery.state, 'partial', 'at once');
    t.is((await api.ok('GET', `/sites?clusterId=${cluster}`)).items[0].delivery.state, 'partial');
    await run();
    await delivered(live, 'the node runs its protection');

    await run({ failed: JSON.stringify([{ kind: 'protection', id, running: true, reason: 'no memory' }]) });
    const failed = { kind: 'protection', reason: 'failed', capabilities: [], message: 'no memory', count: 1, nodes };
    await delivered({ ...partial, blocked: [failed] }, 'the node could not apply it');
    await run({ failed: '[]' });
    await delivered(live, 'it could again');

    await run({ features: [] });
    const held = { kind: 'protection', reason: 'lacking', capabilities: ['ja4-v1'], message: '', count: 1, nodes };
    await delivered({ ...partial, blocked: [held] }, 'the node lacks what it needs');
    await patch(id, { logJa4: false });
    await delivered(partial, 'removed, and the node has not passed it');
    await run();
    await delivered(live, 'the node has passed the removal');

    await api.ok('DELETE', `/sites/${id}`);
    const of = async () =>
      (
        await deliveryOf(api.sql, [{ id, clusterId: cluster, enabled: false, updatedAt: new Date() }], situationNow)
      ).get(id)!;
    t.like(await of(), { servingNodes: 1, currentNodes: 0 }, 'a deleted site counts until the node has passed it');
    await run();
    t.like(await of(), { servingNodes: 0, currentNodes: 1 });
  },
);

test.serial('an equal change writes, publishes and audits nothing', async (t) => {
  const id = await newSite();
  const before = await patch(id, { underAttack: true });
  const audits = (await api.audit(id)).length;
  const reasons = await published(clusterId, async () => {
    for (const change of [{}, { cc: {} }, { underAttack: true }, { cc: { siteQps: 1000 } }]) {
      t.deepEqual(await patch(id, change), before);
    }
  });
  t.deepEqual(reasons, []);
  t.is((await api.audit(id)).length, audits);
});

test.serial('what nodes do not see is saved and audited, and publishes nothing', async (t) => {
  const id = await newSite();
  const reasons = await published(clusterId, async () => {
    await patch(id, { underAttackChallenge: 'pow' });
    await patch(id, { cc: { siteQps: 7 } });
  });
  t.deepEqual(reasons, []);
  const { underAttackChallenge, cc } = await read(id);
  t.deepEqual([underAttackChallenge, cc.siteQps], ['pow', 7]);
  t.is((await api.audit(id)).filter(({ action }) => action === 'site.protection_update').length, 2);
});

test.serial('reason, audit entry and configuration entry of a change', async (t) => {
  const id = await newSite();
  const reasons = await published(clusterId, async () => {
    await patch(id, { underAttack: true, underAttackChallenge: 'captcha', powDifficulty: 18 });
    await patch(id, { cc: { enabled: true, maxLevel: 'js', highPowInsteadOfCaptcha: true, ipQps: 0 } });
  });
  t.deepEqual(reasons, ['site_protection_updated', 'site_protection_updated']);
  const audit = (await api.audit(id)).filter(({ action }) => action === 'site.protection_update');
  t.like(audit[0], {
    actorType: 'api_key',
    metadata: { changed: ['underAttack', 'underAttackChallenge', 'powDifficulty'] },
  });
  const entry = (await entryOf(id))!;
  t.like(entry, {
    underAttack: true,
    underAttackChallenge: ChallengeType.CAPTCHA,
    passTtlSeconds: 1800,
    powDifficulty: 18,
    powHighDifficulty: 20,
    logJa4: false,
  });
  t.false(entry.cc!.followTemplate);
  const { $typeName: _, ...thresholds } = entry.cc!.thresholds!;
  t.deepEqual(thresholds, { ...STANDARD, maxLevel: ChallengeType.JS, highPowInsteadOfCaptcha: true, ipQps: 0 });
  await patch(id, { underAttack: false, powDifficulty: 16, cc: { enabled: false } });
  t.is(await entryOf(id), undefined);
});

test.serial('a capability is needed by what uses it only', async (t) => {
  const id = await newSite();
  const rows: readonly (readonly [Body, string[]])[] = [
    [{ passTtlSeconds: 600 }, []],
    [{ underAttack: true }, ['challenge-v1']],
    [{ underAttack: false, cc: { enabled: true } }, ['challenge-v1']],
    [{ logJa4: true }, ['challenge-v1', 'ja4-v1']],
    [{ cc: { enabled: false } }, ['ja4-v1']],
    [{ logJa4: false }, []],
  ];
  for (const [change, features] of rows) {
    await patch(id, change);
    t.deepEqual(await featuresOf('protection', id), features, JSON.stringify(change));
  }
});

test.serial('limits of each field', async (t) => {
  const id = await newSite();
  const range: Readonly<Record<string, readonly [number, number]>> = {
    passTtlSeconds: [300, 86_400],
    powDifficulty: [8, 24],
    powHighDifficulty: [8, 26],
    'cc/windowSeconds': [5, 60],
    'cc/siteQps': [0, 1_000_000],
    'cc/urlQps': [0, 1_000_000],
    'cc/ipQps': [0, 1_000_000],
    'cc/ipBanSeconds': [60, 86_400],
    'cc/originErrorPercent': [0, 100],
    'cc/originErrorMinRequests': [0, 1_000_000],
    'cc/escalateAfterSeconds': [1, 3600],
    'cc/cooldownSeconds': [1, 86_400],
  };
  const change = (name: string, value: unknown): Body => {
    const field = name.replace('cc/', '');
    // The two difficulties bound each other; that has a test of its own.
    const also =
      field === 'powHighDifficulty' ? { powDifficulty: 8 } : field === 'powDifficulty' ? { powHighDifficulty: 26 } : {};
    return name.startsWith('cc/') ? { cc: { [field]: value } } : { ...also, [field]: value };
  };
  for (const [name, [least, most]] of Object.entries(range)) {
    for (const value of [least, most]) await patch(id, change(name, value));
    for (const value of [least - 1, most + 1, least + 0.5, String(least), null]) {
      await api.badField(t, `/${name}`, 'PATCH', pathOf(id), change(name, value));
    }
  }
  for (const value of ['cookie302', 'js', 'pow', 'captcha']) {
    await patch(id, { underAttackChallenge: value, cc: { maxLevel: value } });
  }
  for (const value of ['normal', '', 'JS', 2]) {
    await api.badField(t, '/underAttackChallenge', 'PATCH', pathOf(id), { underAttackChallenge: value });
    await api.badField(t, '/cc/maxLevel', 'PATCH', pathOf(id), { cc: { maxLevel: value } });
  }
  for (const field of ['siteId', 'updatedAt', 'ccTemplate', 'effectiveCc', 'platformUnderAttack', 'other']) {
    await api.badField(t, `/${field}`, 'PATCH', pathOf(id), { [field]: true });
  }
  await api.badField(t, '/cc/other', 'PATCH', pathOf(id), { cc: { other: 1 } });
});

test.serial('the high difficulty is at least the normal one, after the change', async (t) => {
  const id = await newSite();
  const rows: readonly (readonly [Body, number | null])[] = [
    [{ powHighDifficulty: 15 }, 16],
    [{ powDifficulty: 21 }, 21],
    [{ powDifficulty: 21, powHighDifficulty: 20 }, 21],
    [{ powDifficulty: 20 }, null],
    [{ powDifficulty: 24, powHighDifficulty: 24 }, null],
    [{ powHighDifficulty: 23 }, 24],
  ];
  for (const [change, min] of rows) {
    if (min === null) await patch(id, change);
    else {
      const data = await api.refused(t, [400, 'PROTECTION_POW_DIFFICULTY'], 'PATCH', pathOf(id), change);
      t.deepEqual(data, { min }, JSON.stringify(change));
    }
  }
});

test.serial('another expectedUpdatedAt is refused with the current one', async (t) => {
  const id = await newSite();
  const { updatedAt } = await read(id);
  const after = await patch(id, { underAttack: true, expectedUpdatedAt: updatedAt });
  const stale = { underAttack: false, expectedUpdatedAt: updatedAt };
  const data = await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PATCH', pathOf(id), stale);
  t.deepEqual(data, { updatedAt: after.updatedAt });
  t.true((await read(id)).underAttack);
});

test.serial('a missing site is refused', async (t) => {
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', pathOf('nobody'));
  await api.refused(t, [404, 'SITE_NOT_FOUND'], 'PATCH', pathOf('nobody'), { underAttack: true });
});

test.serial('deleting a site removes its entry, and the template with the last follower', async (t) => {
  const id = await newSite();
  await patch(id, { underAttack: true, cc: { enabled: true, followTemplate: true } });
  t.deepEqual(await api.entries(clusterId, 'cc-template'), ['']);
  await api.ok('DELETE', `/sites/${id}`);
  t.is(await entryOf(id), undefined);
  t.deepEqual(await api.entries(clusterId, 'cc-template'), []);
});

test.serial('Under Attack on all sites is one entry in each cluster', async (t) => {
  const id = await newSite();
  await newSite();
  const path = '/settings/protection';
  const defaults = { underAttack: false, underAttackChallenge: 'js', eventRetentionDays: 30 };
  t.deepEqual(await api.ok('GET', path), defaults);
  const change = async (more: Body) => {
    const before = [(await api.reasons(clusterId)).length, (await api.reasons(quiet)).length] as const;
    const answer = await api.ok('PUT', path, more);
    const reasons = [
      (await api.reasons(clusterId)).slice(before[0]).join(),
      (await api.reasons(quiet)).slice(before[1]).join(),
    ];
    return { answer, reasons };
  };
  const on = await change({ underAttack: true, underAttackChallenge: 'pow' });
  t.deepEqual(on.answer, { underAttack: true, underAttackChallenge: 'pow', eventRetentionDays: 30 });
  t.deepEqual(on.reasons, ['platform_protection_updated', 'platform_protection_updated']);
  for (const cluster of [clusterId, quiet]) {
    t.deepEqual(await api.entries(cluster, 'platform-protection'), ['']);
    const body = (await api.entry(cluster, 'platform-protection', ''))!;
    t.like(fromBinary(PlatformProtectionSchema, body), {
      underAttack: true,
      underAttackChallenge: ChallengeType.POW,
    });
  }
  t.deepEqual(await featuresOf('platform-protection', ''), ['challenge-v1']);
  t.like(await read(id), { platformUnderAttack: true, underAttack: false });
  const later = await api.cluster('made-during-an-attack');
  t.deepEqual(await api.entries(later, 'platform-protection'), ['']);
  t.deepEqual((await change({ underAttack: true })).reasons, ['', '']);
  t.deepEqual((await change({ eventRetentionDays: 7 })).reasons, ['', '']);
  t.deepEqual((await change({ underAttack: false })).reasons[0], 'platform_protection_updated');
  t.deepEqual(await api.entries(clusterId, 'platform-protection'), []);
  t.deepEqual((await change({ underAttackChallenge: 'js', eventRetentionDays: 30 })).reasons, ['', '']);
  t.deepEqual(await api.ok('GET', path), defaults);
  t.is((await api.audit('protection')).filter(({ action }) => action === 'system.protection_update').length, 4);
  for (const eventRetentionDays of [7, 365, 30]) await api.ok('PUT', path, { eventRetentionDays });
  for (const eventRetentionDays of [6, 366, 30.5, null]) {
    await api.badField(t, '/eventRetentionDays', 'PUT', path, { eventRetentionDays });
  }
  await api.badField(t, '/underAttackChallenge', 'PUT', path, { underAttackChallenge: 'normal' });
});

test.serial('a change of the template goes to clusters with sites that follow it', async (t) => {
  const path = '/settings/cc-template';
  t.deepEqual(await api.ok('GET', path), STANDARD);
  const follower = await newSite();
  const own = await newSite();
  const off = await newSite(quiet);
  await patch(follower, { cc: { enabled: true, followTemplate: true, siteQps: 5 } });
  await patch(own, { cc: { enabled: true, siteQps: 5 } });
  await patch(off, { cc: { enabled: false, followTemplate: true } });
  t.deepEqual((await read(follower)).effectiveCc, STANDARD);
  t.true((await entryOf(follower))!.cc!.followTemplate);
  t.is((await entryOf(follower))!.cc!.thresholds, undefined);
  let others: string[] = [];
  const reasons = await published(clusterId, async () => {
    others = await published(quiet, async () => {
      t.deepEqual(await api.ok('PUT', path, { siteQps: 300, maxLevel: 'js' }), {
        ...STANDARD,
        siteQps: 300,
        maxLevel: 'js',
      });
      await api.ok('PUT', path, { siteQps: 300 });
    });
  });
  t.deepEqual([reasons, others], [['cc_template_updated'], []]);
  const template = fromBinary(CcTemplateSchema, (await api.entry(clusterId, 'cc-template', ''))!);
  t.like(template.thresholds, { siteQps: 300, maxLevel: ChallengeType.JS });
  t.is((await read(follower)).effectiveCc.siteQps, 300);
  t.is((await read(own)).effectiveCc.siteQps, 5);
  t.is((await read(own)).ccTemplate.siteQps, 300);
  t.is((await api.audit('cc_template')).filter(({ action }) => action === 'system.cc_template_update').length, 1);
  // The first follower of a cluster brings the template as it is now.
  await patch(off, { cc: { enabled: true } });
  const brought = fromBinary(CcTemplateSchema, (await api.entry(quiet, 'cc-template', ''))!);
  t.is(brought.thresholds!.siteQps, 300);
  await patch(off, { cc: { followTemplate: false } });
  t.deepEqual(await api.entries(quiet, 'cc-template'), []);
  for (const field of ['enabled', 'followTemplate']) await api.badField(t, `/${field}`, 'PUT', path, { [field]: true });
  await api.badField(t, '/ipBanSeconds', 'PUT', path, { ipBanSeconds: 59 });
  await api.ok('PUT', path, STANDARD);
});

test.serial('a follower made while the template changes has the template that lasts', async (t) => {
  for (let round = 1; round <= 8; round++) {
    const id = await newSite(quiet);
    await Promise.all([
      patch(id, { cc: { enabled: true, followTemplate: true } }),
      api.ok('PUT', '/settings/cc-template', { siteQps: round }),
    ]);
    const template = fromBinary(CcTemplateSchema, (await api.entry(quiet, 'cc-template', ''))!);
    t.is(template.thresholds!.siteQps, round);
    await api.ok('DELETE', `/sites/${id}`);
  }
  await api.ok('PUT', '/settings/cc-template', STANDARD);
});

test('presets are those of the specification', (t) => {
  t.deepEqual(CHALLENGE_PRESETS, {
    loose: { passTtlSeconds: 3600, powDifficulty: 14, powHighDifficulty: 18 },
    standard: { passTtlSeconds: 1800, powDifficulty: 16, powHighDifficulty: 20 },
    strict: { passTtlSeconds: 900, powDifficulty: 18, powHighDifficulty: 22 },
  });
  const row = ({ maxLevel, siteQps, urlQps, ipQps, ipBanSeconds, ...rest }: typeof CC_PRESETS.loose) => [
    maxLevel,
    `${siteQps} / ${urlQps} / ${ipQps}`,
    ipBanSeconds,
    `${rest.originErrorPercent} / ${rest.originErrorMinRequests}`,
    `${rest.escalateAfterSeconds} / ${rest.cooldownSeconds}`,
    rest.windowSeconds,
    rest.highPowInsteadOfCaptcha,
  ];
  t.deepEqual(row(CC_PRESETS.loose), ['pow', '3000 / 600 / 150', 300, '70 / 200', '20 / 60', 10, false]);
  t.deepEqual(row(CC_PRESETS.standard), ['captcha', '1000 / 200 / 50', 600, '50 / 100', '10 / 60', 10, false]);
  t.deepEqual(row(CC_PRESETS.strict), ['captcha', '300 / 60 / 20', 3600, '30 / 50', '5 / 300', 10, false]);
  t.is(presetOf(CHALLENGE_PRESETS, DEFAULT_PROTECTION), 'standard');
  t.is(presetOf(CC_PRESETS, DEFAULT_PROTECTION.cc), 'standard');
  t.is(presetOf(CC_PRESETS, { ...CC_PRESETS.strict, ipQps: 21 }), null);
});
