import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { formatCidr } from '../../../../agents/edge/bans/cidr.ts';
import { AllowList } from '../../../../agents/edge/nft/allow-list.ts';
import {
  ClientIpMode,
  ClientIpSchema,
  IpListChunkSchema,
  IpListKind,
  IpListSchema,
} from '../../../../proto/gen/svc/config/v1/cluster_pb.js';
import { memoryLog } from '../helpers/log.ts';

function setUp(fixed: string[] = []) {
  let changes = 0;
  const { log, lines } = memoryLog();
  const list = new AllowList(log, fixed, () => changes++);
  const put = <D extends DescMessage>(kind: string, id: string, schema: D, value: MessageInitShape<D>): void =>
    list.put(kind, id, toBinary(schema, create(schema, value)));
  const cidrs = (): string[] => list.cidrs().map(formatCidr).sort();
  return { list, put, cidrs, lines, changes: () => changes };
}

const LOOPBACK = ['127.0.0.0/8', '::1/128'];

test('loopback and fixed peers are always exempt', (t) => {
  t.deepEqual(setUp(['192.0.2.0/24']).cidrs(), ['127.0.0.0/8', '192.0.2.0/24', '::1/128']);
});

test('trusted proxies are exempt in header mode only', (t) => {
  const { put, cidrs, list } = setUp();
  put('client-ip', '', ClientIpSchema, { mode: ClientIpMode.HEADER, trustedCidrs: ['198.51.100.0/24'] });
  t.deepEqual(cidrs(), ['127.0.0.0/8', '198.51.100.0/24', '::1/128']);
  put('client-ip', '', ClientIpSchema, { mode: ClientIpMode.DIRECT, trustedCidrs: ['198.51.100.0/24'] });
  t.deepEqual(cidrs(), LOOPBACK);
  put('client-ip', '', ClientIpSchema, { mode: ClientIpMode.HEADER, trustedCidrs: ['198.51.100.0/24'] });
  list.remove('client-ip', '');
  t.deepEqual(cidrs(), LOOPBACK);
});

test('without proxy peers the log says that proxy_protocol mode believes everybody', (t) => {
  for (const [fixed, mode, told] of [
    [[], ClientIpMode.PROXY_PROTOCOL, true],
    [['10.0.0.0/8'], ClientIpMode.PROXY_PROTOCOL, false],
    [[], ClientIpMode.HEADER, false],
    [[], ClientIpMode.DIRECT, false],
  ] as const) {
    const { put, lines } = setUp([...fixed]);
    put('client-ip', '', ClientIpSchema, { mode });
    t.is(JSON.stringify(lines).includes('--proxy-peers'), told, `${fixed} ${ClientIpMode[mode]}`);
  }
});

test('entries of allow lists are exempt, those of block lists and collections are not, in whatever order they come', (t) => {
  const { put, cidrs, list } = setUp();
  put('ip-list-chunk', 'l1/0', IpListChunkSchema, { listId: 'l1', cidrs: ['203.0.113.7/32'] });
  t.deepEqual(cidrs(), LOOPBACK);
  put('ip-list', 'l1', IpListSchema, { listKind: IpListKind.ALLOW });
  put('ip-list', 'l2', IpListSchema, { listKind: IpListKind.BLOCK });
  put('ip-list-chunk', 'l2/5', IpListChunkSchema, { listId: 'l2', cidrs: ['203.0.113.8/32'] });
  t.deepEqual(cidrs(), ['127.0.0.0/8', '203.0.113.7/32', '::1/128']);
  put('ip-list', 'l1', IpListSchema, { listKind: IpListKind.COLLECTION });
  t.deepEqual(cidrs(), LOOPBACK);
  put('ip-list', 'l1', IpListSchema, { listKind: IpListKind.ALLOW });
  list.remove('ip-list-chunk', 'l1/0');
  t.deepEqual(cidrs(), LOOPBACK);
});

test('an entry that cannot be read keeps what it said before', (t) => {
  const { put, list, cidrs, lines } = setUp();
  put('client-ip', '', ClientIpSchema, { mode: ClientIpMode.HEADER, trustedCidrs: ['198.51.100.0/24'] });
  list.put('client-ip', '', Buffer.from([0xff, 0xff]));
  t.true(cidrs().includes('198.51.100.0/24'));
  t.is(lines.length, 1);
});

test('malformed prefixes are ignored and told', (t) => {
  const { put, cidrs, lines } = setUp();
  put('client-ip', '', ClientIpSchema, { mode: ClientIpMode.HEADER, trustedCidrs: ['nonsense', '198.51.100.9'] });
  t.deepEqual(cidrs(), ['127.0.0.0/8', '198.51.100.9/32', '::1/128']);
  t.true(lines.some((line) => line.includes('nonsense')));
});

test('names and addresses of the console are resolved; what does not resolve keeps its last answer', async (t) => {
  const { list, cidrs, changes } = setUp();
  await list.resolve(['localhost', '192.0.2.50', '2001:db8::50']);
  t.true(cidrs().includes('192.0.2.50/32') && cidrs().includes('2001:db8::50/128'));
  const before = changes();
  await list.resolve(['localhost', '192.0.2.50', '2001:db8::50', 'does-not-exist.invalid']);
  t.is(changes(), before, 'nothing new');
  await list.resolve(['localhost']);
  t.false(cidrs().includes('192.0.2.50/32'));
});

test('other kinds are none of its business', (t) => {
  const { list, changes } = setUp();
  list.put('site', 'a', Buffer.from('x'));
  list.remove('site', 'a');
  t.is(changes(), 0);
});
