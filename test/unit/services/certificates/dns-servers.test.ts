// Where values for authorities stand, and who is asked whether they are there.
import test from 'ava';
import { allAnswer, followAliases, serversOf } from '../../../../services/certificates/acme/dns/authoritative.ts';
import { providerOf } from '../../../../services/certificates/acme/dns/open-provider.ts';
import type { NameResolver } from '../../../../services/certificates/acme/tools.ts';
import { isInside, recordName } from '../../../../services/dns/adapters/names.ts';
import { rfc2136Adapter } from '../../../../services/dns/adapters/rfc2136/rfc2136.adapter.ts';
import { parseServerAddress } from '../../../../services/dns/adapters/server-address.ts';
import { webhookAdapter } from '../../../../services/dns/adapters/webhook/webhook.adapter.ts';
import { TestDns } from '../../../helpers/dns-server.ts';

const none = () => Promise.reject(Object.assign(new Error('none'), { code: 'ENODATA' }));
const of = (records: Record<string, string[]>) => (name: string) =>
  name in records ? Promise.resolve(records[name]!) : none();

function resolver(records: Partial<Record<keyof NameResolver, Record<string, string[]>>>): NameResolver {
  const { resolve4 = {}, resolve6 = {}, resolveCname = {}, resolveNs = {} } = records;
  return {
    resolve4: of(resolve4),
    resolve6: of(resolve6),
    resolveCname: of(resolveCname),
    resolveNs: of(resolveNs),
  } as NameResolver;
}

const ZONE = { zone: 'example.org', nameservers: [], allow: [] };

test('the servers of the nearest part of the zone are asked, and none of a private network', async (t) => {
  const records = resolver({
    resolveNs: {
      'example.org': ['ns.far.net'],
      'part.example.org': ['ns1.near.net', 'ns2.near.net', 'inner.near.net'],
    },
    resolve4: { 'ns1.near.net': ['8.8.4.4'], 'inner.near.net': ['10.0.0.1', '127.0.0.1'], 'ns.far.net': ['1.1.1.1'] },
    resolve6: { 'ns1.near.net': ['2606:4700::1'], 'ns2.near.net': ['2606:4700::2'] },
  });
  t.deepEqual(await serversOf('_acme-challenge.a.part.example.org', ZONE, records), [
    ['8.8.4.4:53', '[2606:4700::1]:53'],
    ['[2606:4700::2]:53'],
  ]);
  t.deepEqual(await serversOf('_acme-challenge.b.example.org', ZONE, records), [['1.1.1.1:53']]);
  await t.throwsAsync(serversOf('_acme-challenge.example.org', ZONE, resolver({})), { message: 'dns_unresolved' });
});

test('servers that a credential names are on private networks only where the operator says so', async (t) => {
  const key = { name: 'key.example.org', algorithm: 'hmac-sha256', secret: Buffer.alloc(32) } as const;
  const record = { name: '_acme-challenge.example.org', value: 'value' };
  const { signal } = new AbortController();
  // Nothing listens there: what is let through is unreachable.
  for (const [allow, code] of [
    [[], 'dns_address_refused'],
    [['10.0.0.0/8'], 'dns_address_refused'],
    [['127.0.0.1/32'], 'dns_unreachable'],
  ] as const) {
    const zone = 'example.org';
    const secret = key.secret.toString('base64');
    const told = providerOf(webhookAdapter.open({ zone, credentials: { url: 'http://127.0.0.1:1/', secret }, allow }));
    await t.throwsAsync(told.add(record, signal), { message: code });
    const credentials = { server: '127.0.0.1:1', tsig_key_name: key.name, tsig_secret: secret };
    const updated = providerOf(rfc2136Adapter.open({ zone, credentials, allow }));
    await t.throwsAsync(updated.add(record, signal), { message: code });
  }
  const named = (allow: string[]) =>
    serversOf(record.name, { ...ZONE, nameservers: ['127.0.0.1:1'], allow }, resolver({}));
  await t.throwsAsync(named([]), { message: 'dns_address_refused' });
  t.deepEqual(await named(['127.0.0.0/8']), [['127.0.0.1:1']]);
});

test('aliases are followed to their end, and not round in a ring', async (t) => {
  const first = '_acme-challenge.example.org';
  const chain = resolver({ resolveCname: { [first]: ['Two.Example.org.'], 'two.example.org': ['three.example.org'] } });
  t.is(await followAliases(first, ZONE, chain), 'three.example.org');
  t.is(await followAliases(first, ZONE, resolver({})), first);
  const ring = resolver({ resolveCname: { [first]: [first] } });
  await t.throwsAsync(followAliases(first, ZONE, ring), { message: 'dns_unresolved' });
  const broken = {
    ...chain,
    resolveCname: () => Promise.reject(Object.assign(new Error('no'), { code: 'ESERVFAIL' })),
  };
  await t.throwsAsync(followAliases(first, ZONE, broken as NameResolver), { message: 'dns_unresolved' });
});

test('a server is asked at any address that it is reached at, and none of them may lack the value', async (t) => {
  const key = { name: 'key.example.org', algorithm: 'hmac-sha256', secret: Buffer.alloc(32) } as const;
  const [one, other] = await Promise.all([1, 2].map(() => new TestDns('example.org', key).start()));
  t.teardown(() => Promise.all([one!.stop(), other!.stop()]));
  const record = { name: '_acme-challenge.example.org', value: 'value' };
  // As where the console has no IPv6: nothing is there.
  const away = '[::1]:1';
  one!.change('add', record.name, record.value);
  t.true(await allAnswer([[one!.address, away]], record));
  t.true(await allAnswer([[away, one!.address], [one!.address]], record));
  t.false(await allAnswer([[one!.address], [away]], record));
  t.false(await allAnswer([[one!.address, other!.address]], record));
  other!.change('add', record.name, record.value);
  t.true(await allAnswer([[one!.address, away, other!.address]], record));
  t.false(await allAnswer([], record));
});

test('addresses of servers and names of records are read as people write them', (t) => {
  t.deepEqual(parseServerAddress('NS.example.org'), { host: 'ns.example.org', port: 53 });
  t.deepEqual(parseServerAddress('192.0.2.1:5353'), { host: '192.0.2.1', port: 5353 });
  t.deepEqual(parseServerAddress('2001:db8::1'), { host: '2001:db8::1', port: 53 });
  t.deepEqual(parseServerAddress('[2001:db8::1]:54'), { host: '2001:db8::1', port: 54 });
  for (const text of ['', ':53', 'a b', 'ns:0', 'ns:65536', '[192.0.2.1]:53', 'ns:53:53', '1.2.3']) {
    t.is(parseServerAddress(text), null, text);
  }
  t.is(recordName(' _Acme.Example.org. '), '_acme.example.org');
  t.is(recordName('a b'), null);
  t.true(isInside('a.b.org', 'b.org') && isInside('b.org', 'b.org'));
  t.false(isInside('ab.org', 'b.org'));
});
