// Rows of request logs as a busy edge has them, encoded. What differs from row to row is encoded for each, the rest once.
import { create, toBinary } from '@bufbuild/protobuf';
import { LogRowSchema } from '../../proto/gen/svc/node/v1/logs_pb.js';

const VARIANTS = 997;
const AGENTS = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1',
  'Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0',
];

/** Makes rows of a process of an edge, of these sites by turns, the first ones more often. */
export function rowMaker(siteIds: readonly string[], boot: bigint): (count: number) => Uint8Array[] {
  const rests = Array.from({ length: VARIANTS }, (_, index) => rest(siteIds, index));
  let row = 0n;
  return (count) =>
    Array.from({ length: count }, () => {
      row++;
      const own = { boot, row, atMs: BigInt(Date.now()), requestId: row.toString(16).padStart(32, '0') };
      return Buffer.concat([toBinary(LogRowSchema, create(LogRowSchema, own)), rests[Number(row) % VARIANTS]!]);
    });
}

function rest(siteIds: readonly string[], index: number): Uint8Array {
  const site = Math.floor(siteIds.length ** (index / VARIANTS)) - 1;
  const isMiss = index % 3 === 0;
  return toBinary(
    LogRowSchema,
    create(LogRowSchema, {
      siteId: siteIds[site]!,
      client: Uint8Array.of(203, 0, 113, index % 256),
      method: 'GET',
      host: `www.site-${site}.example`,
      path: `/products/category-${index % 50}/item-${index}`,
      status: index % 50 === 0 ? 404 : 200,
      bytesSent: BigInt(500 + index * 37),
      bytesReceived: 700n,
      durationMs: index % 200,
      cacheStatus: isMiss ? 'MISS' : 'HIT',
      sampleRate: 10_000,
      userAgent: AGENTS[index % AGENTS.length]!,
      referer: `https://www.site-${site}.example/products/category-${index % 50}`,
      httpVersion: '2',
      secure: true,
      country: 'DE',
      asn: 1000 + index,
      asName: `Example Network ${index}`,
      contentType: 'text/html',
      tlsVersion: '1.3',
      ...(isMiss && { upstream: '10.20.0.7:443', upstreamStatus: 200, upstreamMs: 30 + (index % 100) }),
    }),
  );
}
