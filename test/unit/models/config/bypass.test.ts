// What of a change goes past a canary, by kind: reference 4.6.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { DEFAULT_PROTECTION, type ProtectionOfSite } from '../../../../contract/resources/protection.ts';
import { DEFAULT_CONTENT_SETTINGS, DEFAULT_ORIGIN_SETTINGS } from '../../../../contract/resources/site-origins.ts';
import { parseDomain } from '../../../../contract/scalars/domain.ts';
import {
  DEFAULT_UNKNOWN_HOSTS,
  type UnknownHosts,
  unknownHostsKind,
} from '../../../../models/clusters/unknown-hosts.entry.ts';
import type { CompiledEntry, EntryKind } from '../../../../models/config/entry-kind.ts';
import { ENTRY_KINDS } from '../../../../models/config/entry-kinds.ts';
import { splitChange } from '../../../../models/rollouts/split-change.ts';
import { compileProtection, protectionKind } from '../../../../models/security/protection.entry.ts';
import { compileSite, type SiteSource, siteKind } from '../../../../models/sites/site.entry.ts';
import { USUAL_PORTS } from '../../../../models/sites/site-ports.ts';
import { bodyHash } from '../../../../proto/entry-hash.ts';
import { SiteProtectionSchema } from '../../../../proto/gen/svc/config/v1/protection_pb.js';
import { SiteSchema } from '../../../../proto/gen/svc/config/v1/site_pb.js';

const site = (more: Partial<SiteSource> = {}): SiteSource => ({
  id: 's',
  name: 'shop',
  enabled: true,
  domains: [parseDomain('a.example')!, parseDomain('b.example')!],
  origins: [],
  originSettings: DEFAULT_ORIGIN_SETTINGS,
  contentSettings: DEFAULT_CONTENT_SETTINGS,
  ports: USUAL_PORTS,
  createdAt: new Date('2026-01-01T00:00:00Z'),
  ...more,
});

/** What nodes outside of the canary get: undefined stands for what they have. */
function passed(kind: EntryKind, before: object, now: CompiledEntry | null): CompiledEntry | null | undefined {
  if (typeof kind.bypass === 'boolean') return kind.bypass ? now : undefined;
  return kind.bypass(before, now);
}

const ofSite = (before: SiteSource, after: SiteSource) => {
  const entry = passed(siteKind, compileSite(before).settings!, compileSite(after));
  return entry && fromBinary(SiteSchema, entry.body);
};

test('a site that is disabled is disabled everywhere, without what is tried of it', (t) => {
  const limit = { requestBodyLimit: 5 };
  const entry = ofSite(site(), site({ enabled: false, contentSettings: limit, name: 'tried' }))!;
  t.true(entry.disabled);
  t.is(entry.name, 'shop');
  t.is(entry.createdAtMs, BigInt(site().createdAt.getTime()));
});

test('a domain that a site loses is lost everywhere, one that it gets is tried', (t) => {
  const domains = [parseDomain('b.example')!, parseDomain('c.example')!];
  const entry = ofSite(site(), site({ domains, contentSettings: { requestBodyLimit: 5 } }))!;
  t.deepEqual(
    entry.domains.map(({ name }) => name),
    ['b.example'],
  );
  t.is(entry.requestBodyLimit, BigInt(DEFAULT_CONTENT_SETTINGS.requestBodyLimit));
});

test('any other change of a site is tried, and so is one that enables it', (t) => {
  t.is(ofSite(site(), site({ name: 'other', contentSettings: { requestBodyLimit: 5 } })), undefined);
  t.is(ofSite(site({ enabled: false }), site()), undefined);
});

const protection = (more: Partial<ProtectionOfSite> = {}): ProtectionOfSite => ({ ...DEFAULT_PROTECTION, ...more });

test('Under Attack of a site is on and off everywhere, without what is tried of its protection', (t) => {
  const tried = { ...DEFAULT_PROTECTION.cc, enabled: true };
  const now = compileProtection(protection({ underAttack: true, underAttackChallenge: 'js', cc: tried }));
  const on = passed(protectionKind, protection(), now)!;
  const message = fromBinary(SiteProtectionSchema, on.body);
  t.true(message.underAttack);
  t.is(message.cc, undefined);
  t.is(passed(protectionKind, protection({ underAttack: true, underAttackChallenge: 'js' }), null), null);
  t.is(passed(protectionKind, protection(), compileProtection(protection({ cc: tried }))), undefined);
});

test('a default site that is one no more is none anywhere', (t) => {
  const hosts = (more: Partial<UnknownHosts>): UnknownHosts => ({ ...DEFAULT_UNKNOWN_HOSTS, ...more });
  const before = hosts({ unknownHost: 'site', defaultSiteId: 's' });
  const now = { body: new Uint8Array(), features: [], refs: [], settings: hosts({ ipAccess: 'close' }) };
  t.deepEqual(passed(unknownHostsKind, before, now)!.settings, { ...before, defaultSiteId: null });
  t.is(passed(unknownHostsKind, before, { ...now, settings: { ...before, ipAccess: 'close' } }), undefined);
});

for (const [kind, expected] of Object.entries({
  'challenge-keys': true,
  'platform-protection': true,
  'client-ip': false,
  'header-limit': false,
  'cache-zone': false,
  'node-cache': true,
  'site-purge-method': true,
  'cc-template': false,
  'ip-list': false,
  'ip-list-chunk': false,
  'origin-policy': false,
  'listen-ports': false,
})) {
  test(`${kind}: ${expected ? 'never waits' : 'is tried'}`, (t) => {
    t.is(ENTRY_KINDS.find((candidate) => candidate.kind === kind)!.bypass, expected);
  });
}

test('an entry of which no settings are kept goes to everybody: what must not wait may be in it', (t) => {
  const compiled = compileSite(site({ enabled: false }));
  const hash = bodyHash(compiled.body);
  const now = { ...compiled, hash, compilerVersion: 1, owner: 'site:s' };
  const stable = { kind: 'site', id: 's', bucket: 1, hash: '00', features: [], compilerVersion: 1, ended: false };
  const { difference, overlay } = splitChange(
    siteKind,
    { id: 's', bucket: 1, stable, overlay: undefined, now, compiled, straight: false },
    () => now,
  );
  t.is(difference?.after, now);
  t.is(overlay, undefined);
});
