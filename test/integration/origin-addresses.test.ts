// Where origins are, as an index: it says what the sites say, and reads as much as it counts.
import test from 'ava';
import fc from 'fast-check';
import type { Knex } from 'knex';
import { type Cidr, contains, formatCidr, parseAddress, parseCidr } from '../../contract/scalars/cidr.ts';
import { up } from '../../migrations/0016-origin-addresses.ts';
import { originRows, originsIn } from '../../models/bans/ban-impact.ts';
import { insertSite, type SiteContent, updateSite } from '../../models/sites/site.ts';
import { USUAL_PORTS } from '../../models/sites/site-ports.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api } from '../helpers/resources.ts';

let running: TestConsole;
let sql: Knex;
let clusterId: string;

test.before('start', async () => {
  running = await startTestConsole();
  const api = new Api(running);
  sql = api.sql;
  clusterId = await api.cluster('located');
});
test.after.always('stop', () => running?.stop());
test.beforeEach('start empty', async () => {
  await sql('site').delete();
});

const contentOf = (addresses: readonly string[]) =>
  ({
    name: 'x',
    domains: [],
    origins: addresses.map((address) => ({ address })),
    originSettings: {},
    contentSettings: {},
    ports: USUAL_PORTS,
  }) as unknown as SiteContent;

/** Few values, so that ranges meet them. */
const bytes = fc.constantFrom(0, 1, 127, 128, 255);
const address = fc.oneof(
  fc.tuple(fc.constant(93), bytes, bytes, bytes).map((parts) => parts.join('.')),
  fc.tuple(bytes, bytes).map(([a, b]) => `2001:db8:${a.toString(16)}::${b.toString(16)}`),
  fc.constant('origin.example'),
);
const range = fc.tuple(address, fc.integer({ min: 16, max: 128 })).map(([text, prefix]) => {
  const cidr = parseCidr(`${text}/${Math.min(prefix, text.includes(':') ? 128 : 32)}`) ?? parseCidr('93.0.0.0/8')!;
  return parseCidr(formatCidr(cidr))!;
});

/** Sites with an origin in the range, by going through all of them. */
function expected(sites: readonly (readonly string[])[], cidr: Cidr): number {
  const inside = (text: string) => {
    const literal = parseAddress(text);
    return literal !== null && literal !== undefined && contains(cidr, literal);
  };
  return sites.filter((addresses) => addresses.some(inside)).length;
}

test.serial('whatever sites are saved, the index counts those that the range meets', async (t) => {
  const site = fc.array(address, { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(site, site), { maxLength: 6 }),
      fc.array(range, { minLength: 4, maxLength: 8 }),
      async (sites, ranges) => {
        await sql('site').delete();
        const now = new Date();
        const ids: string[] = [];
        for (const [before] of sites) ids.push(await insertSite(sql, clusterId, contentOf(before), now));
        const check = async (of: readonly (readonly string[])[]) => {
          for (const cidr of ranges) {
            const text = formatCidr(cidr);
            t.is((await originsIn(sql, text, null))?.count ?? 0, expected(of, cidr), `${text} ${JSON.stringify(of)}`);
            if (ids[0]) {
              t.is((await originsIn(sql, text, ids[0]))?.count ?? 0, expected(of.slice(0, 1), cidr), text);
            }
          }
        };
        await check(sites.map(([before]) => before));
        for (const [index, [, after]] of sites.entries()) await updateSite(sql, ids[index]!, contentOf(after), now);
        await check(sites.map(([, after]) => after));
      },
    ),
    { numRuns: 25 },
  );
});

test.serial('the migration finds the addresses of sites that are there', async (t) => {
  await insertSite(sql, clusterId, contentOf(['93.184.216.34', 'origin.example', '2001:db8::1']), new Date());
  await insertSite(sql, clusterId, contentOf(['93.184.216.34', '93.184.216.34']), new Date());
  const rows = () => sql('site_origin_address').select('site_id', 'address').orderBy(['site_id', 'address']);
  const before = await rows();
  t.is(before.length, 3);
  await sql.transaction(async (trx) => {
    await trx.raw('drop table site_origin_address');
    await up(trx);
  });
  t.deepEqual(await rows(), before);
});

interface Plan {
  'Node Type': string;
  'Index Name'?: string;
  'Relation Name'?: string;
  'Actual Rows': number;
  Plans?: Plan[];
}
const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)];

test.serial('with 10,000 sites a range is found by an index, and a bounded number of rows is read', async (t) => {
  await sql.raw(
    `with made as (
       insert into site (cluster_id, name, origins, origin_settings, content_settings, ports, search_text)
       select ?, 'site ' || n, '[]', '{}', '{}', '{}', '' from generate_series(1, 10000) n returning id
     )
     insert into site_origin_address (site_id, address)
     select id, '11.0.0.0'::inet + (row_number() over ())::int from made`,
    [clusterId],
  );
  await sql.raw('analyze site_origin_address');
  const { id } = await sql('site').first('id');
  for (const [cidr, siteId, most] of [
    ['11.0.1.2/32', null, 1],
    ['11.0.1.0/24', null, 256],
    ['11.0.0.0/16', null, 3200],
    ['11.0.0.0/16', id, 1],
  ] as const) {
    const bindings = { cidr, ...(siteId === null ? {} : { siteId }) };
    const { rows } = await sql.raw(`explain (analyze, format json) ${originRows(siteId)}`, bindings);
    const scans = nodes(rows[0]['QUERY PLAN'][0].Plan).filter(({ 'Node Type': type }) => type.endsWith('Scan'));
    const read = scans.filter((scan) => scan['Relation Name'] === 'site_origin_address');
    t.true(read.length > 0, cidr);
    for (const scan of read) {
      // All of a range that half of the table is in is read in the order of the table, until there is enough.
      if (cidr !== '11.0.0.0/16') t.not(scan['Node Type'], 'Seq Scan', cidr);
      t.true(scan['Actual Rows'] <= most, `${cidr}: ${scan['Actual Rows']}`);
    }
    if (siteId === null && cidr !== '11.0.0.0/16') {
      t.true(
        scans.some((scan) => scan['Index Name'] === 'site_origin_address_range'),
        JSON.stringify(scans),
      );
    }
  }
  t.deepEqual((await originsIn(sql, '11.0.0.0/16', null))?.count, 100);
});
