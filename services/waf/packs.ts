// The packs of exclusions, and what each would have silenced on a site, by the events that nodes told of.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { startOf } from '../../contract/resources/rule-hits.ts';
import { DEFAULT_WAF_EXCLUSION, type WafExclusion } from '../../contract/resources/site-waf.ts';
import { MAX_LOOKED_AT } from '../../contract/resources/waf-exclusions.ts';
import type { wafPacks } from '../../contract/resources/waf-packs.ts';
import { exclusionsOfPack, exclusionsOfPart, WAF_PACKS, type WafPack } from '../../contract/waf-packs.ts';
import { readSiteWaf } from '../../models/waf/site-waf.ts';
import { type NewestMatches, newestMatches } from '../../models/waf/waf-event.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { countSilenced, type Silenced } from './silenced.ts';

/** The rule about media types of bodies. */
const UNKNOWN_TYPE = 920_420;

/** Throws SITE_NOT_FOUND. */
export async function listWafPacks(
  { pools }: Pick<Runtime, 'pools'>,
  { id }: Input<typeof wafPacks.list>,
): Promise<Output<typeof wafPacks.list>> {
  const { settings } = (await readSiteWaf(pools.api, id)) ?? fail('SITE_NOT_FOUND');
  const events = await newestMatches(pools.api, id, startOf('7d'), MAX_LOOKED_AT);
  const items = WAF_PACKS.map((pack) => {
    const { name, version, documented, exclusions } = pack;
    const counted = countPack(pack, events);
    return {
      pack: pack.id,
      name,
      version,
      documented,
      enabled: settings.packs.includes(pack.id),
      exclusions: exclusions.flatMap((part) =>
        exclusionsOfPart(part).map((exclusion) => ({ ...exclusion, reason: part.reason.en })),
      ),
      contentTypes: [...pack.contentTypes],
      events: counted?.events ?? null,
      matched: counted?.matched ?? null,
    };
  });
  return { approximate: true, looked: events.length, items };
}

/** Of exclusions for any path, only requests count that have a path of the application: scans of other paths suggest nothing. */
export function countPack(pack: WafPack, events: readonly NewestMatches[]): Silenced | null {
  const { contentTypes, pathEnds } = pack;
  const exclusions: WafExclusion[] = exclusionsOfPack(pack);
  if (contentTypes.length > 0) {
    exclusions.push({ ...DEFAULT_WAF_EXCLUSION, ruleId: UNKNOWN_TYPE, part: 'header', name: 'Content-Type' });
  }
  const isOfPack = ({ path }: NewestMatches) => pathEnds.length === 0 || pathEnds.some((end) => path.endsWith(end));
  return countSilenced(exclusions, events.filter(isOfPack));
}
