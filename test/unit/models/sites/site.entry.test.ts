import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { DEFAULT_ORIGIN_SETTINGS, type Origin } from '../../../../contract/resources/site-origins.ts';
import { compileSite, type SiteSource, siteKind } from '../../../../models/sites/site.entry.ts';
import { USUAL_PORTS } from '../../../../models/sites/site-ports.ts';
import { SiteSchema } from '../../../../proto/gen/svc/config/v1/site_pb.js';

const origin: Origin = {
  address: 'origin.example',
  scheme: 'http',
  port: 80,
  weight: 1,
  backup: false,
  hostHeader: '',
  sni: '',
  group: '',
};
const site = (more: Partial<SiteSource> = {}): SiteSource => ({
  id: 'id',
  name: 'Site',
  enabled: true,
  domains: [{ form: 'exact', name: 'a.com' }],
  origins: [origin],
  originSettings: DEFAULT_ORIGIN_SETTINGS,
  contentSettings: { requestBodyLimit: 104_857_600 },
  ports: USUAL_PORTS,
  createdAt: new Date('2026-01-02T03:04:05.678Z'),
  ...more,
});

/** A changed text here needs a higher compilerVersion: nodes and revisions hold the bytes of the old one. */
const GOLDEN = {
  compilerVersion: 2,
  enabled:
    '0a04536974651a0908011205612e636f6d22260a107a7777484475326342496c42386f6b7a120e6f726967696e2e6578616d706c65185028012a2008011001180120012803301e3803400148904e50e0d40358e0d403603c68e807308080803238ae9ea6e5b733',
  disabled: '0a045369746510011a0908011205612e636f6d38ae9ea6e5b733',
};

test('the bytes of a compiler version stay as they are', (t) => {
  t.is(siteKind.compilerVersion, GOLDEN.compilerVersion);
  t.is(Buffer.from(compileSite(site()).body).toString('hex'), GOLDEN.enabled);
  t.is(Buffer.from(compileSite(site({ enabled: false })).body).toString('hex'), GOLDEN.disabled);
});

test('suffix and pattern domains need domains-v2', (t) => {
  t.deepEqual(compileSite(site()).features, []);
  t.deepEqual(compileSite(site({ domains: [{ form: 'wildcard', name: 'a.com' }] })).features, []);
  t.deepEqual(compileSite(site({ domains: [{ form: 'suffix', name: 'a.com' }] })).features, ['domains-v2']);
  t.deepEqual(compileSite(site({ domains: [{ form: 'pattern', name: 'a' }] })).features, ['domains-v2']);
});

test('an enabled check needs active-health-v1; of a disabled one nodes get nothing', (t) => {
  const checked = (enabled: boolean) => ({
    ...DEFAULT_ORIGIN_SETTINGS,
    activeHealthCheck: { ...DEFAULT_ORIGIN_SETTINGS.activeHealthCheck, enabled },
  });
  t.deepEqual(compileSite(site({ originSettings: checked(true) })).features, ['active-health-v1']);
  t.deepEqual(compileSite(site({ originSettings: checked(true), enabled: false })).features, []);
  t.is(Buffer.from(compileSite(site({ originSettings: checked(false) })).body).toString('hex'), GOLDEN.enabled);
});

test('HTTP/2 to origins needs origin-http2-v1; of a disabled site nodes get nothing', (t) => {
  const originSettings = { ...DEFAULT_ORIGIN_SETTINGS, protocol: 'http2' as const, grpc: true };
  const { body, features } = compileSite(site({ originSettings }));
  t.deepEqual(features, ['origin-http2-v1']);
  t.like(fromBinary(SiteSchema, body).pool, { http2: true, grpc: true });
  t.deepEqual(compileSite(site({ originSettings, enabled: false })).features, []);
});

test('an entry refers to its domains', (t) => {
  const { refs } = compileSite(
    site({
      domains: [
        { form: 'exact', name: 'a.com' },
        { form: 'suffix', name: 'b.com' },
      ],
    }),
  );
  t.deepEqual(refs, ['domain:a.com', 'domain:.b.com']);
});

test('ports of its own need edge-ports-v1 and are referred to; the usual ones are not told', (t) => {
  const { body, features, refs } = compileSite(site({ ports: { http: [80, 8080], https: [443, 8443] } }));
  t.deepEqual(features, ['edge-ports-v1']);
  t.deepEqual(refs, ['domain:a.com', 'port:http/8080', 'port:https/8443']);
  const { httpPorts, httpsPorts } = fromBinary(SiteSchema, body);
  t.deepEqual(
    [httpPorts, httpsPorts],
    [
      [80, 8080],
      [443, 8443],
    ],
  );
  t.deepEqual(compileSite(site({ ports: { http: [], https: [443] } })).features, ['edge-ports-v1']);
  const disabled = compileSite(site({ enabled: false, ports: { http: [8080], https: [443] } }));
  t.deepEqual(disabled.features, []);
  t.is(Buffer.from(disabled.body).toString('hex'), GOLDEN.disabled);
});

test('settings of before session affinity show, route and bypass as if it were off', (t) => {
  const { settings } = compileSite(site());
  const { sessionAffinity: _, ...originSettings } = DEFAULT_ORIGIN_SETTINGS;
  const old = { ...settings, originSettings };
  t.deepEqual(siteKind.shown!(old), siteKind.shown!(settings!));
  t.false(siteKind.routes!(old, settings!));
  const pinned = { ...DEFAULT_ORIGIN_SETTINGS, sessionAffinity: { enabled: true, ttlSeconds: 60 } };
  t.true(siteKind.routes!(old, compileSite(site({ originSettings: pinned })).settings!));
  const moved = compileSite(site({ domains: [{ form: 'exact', name: 'b.com' }], originSettings: pinned }));
  const bypass = siteKind.bypass as (stable: object, now: typeof moved) => typeof moved | undefined;
  t.deepEqual(bypass(old, moved)!.features, []);
});
