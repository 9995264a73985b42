import test from 'ava';
import type { TailFilter } from '../../../../../contract/resources/log-tail.ts';
import type { LogEntry } from '../../../../../contract/resources/logs.ts';
import { tailMatch } from '../../../../../services/api-gateway/live/tail-match.ts';

const ENTRY = {
  clientIp: '2001:db8::1',
  method: 'GET',
  host: 'a.example',
  path: '/cart/1',
  status: 404,
  durationMs: 20,
  requestId: 'r1',
  cacheStatus: 'MISS',
  ja4: 'j',
  userAgent: 'Some Bot/1.0',
  referer: 'https://b.example/',
  country: 'DE',
  asn: 64_496,
  blockReason: null,
} as LogEntry;

const CASES: [TailFilter, Partial<LogEntry>, boolean][] = [
  [{}, {}, true],
  [{ status: 404 }, {}, true],
  [{ status: 200 }, {}, false],
  [{ statusClass: 4 }, {}, true],
  [{ statusClass: 5 }, {}, false],
  [{ ip: '2001:db8:0:0::1' }, {}, true],
  [{ ip: '2001:db8::2' }, {}, false],
  [{ cidr: '2001:db8::/32' }, {}, true],
  [{ cidr: '2001:db9::/32' }, {}, false],
  [{ ip: '192.0.2.1' }, { clientIp: '192.0.2.1' }, true],
  [{ cidr: '192.0.2.0/24' }, { clientIp: null }, false],
  [{ method: 'POST' }, {}, false],
  [{ host: 'A.example' }, {}, true],
  [{ path: '/cart' }, {}, true],
  [{ path: 'cart' }, {}, false],
  [{ requestId: 'r1', cacheStatus: 'MISS', ja4: 'j', country: 'DE', asn: 64_496 }, {}, true],
  [{ requestId: 'r1', country: 'FR' }, {}, false],
  [{ ua: ' bot/ ' }, {}, true],
  [{ ua: 'bot' }, { userAgent: null }, false],
  [{ referer: 'B.EXAMPLE' }, {}, true],
  [{ minDuration: 20 }, {}, true],
  [{ minDuration: 21 }, {}, false],
  [{ blockReason: 'any' }, {}, false],
  [{ blockReason: 'any' }, { blockReason: 'crs' }, true],
  [{ blockReason: 'rule' }, { blockReason: 'crs' }, false],
];

test('a tail shows what a search with the same filter finds', (t) => {
  for (const [filter, changed, expected] of CASES) {
    t.is(tailMatch(filter)({ ...ENTRY, ...changed }), expected, JSON.stringify([filter, changed]));
  }
});
