// Turns the settings that a client sent into what is saved: complete, canonical, and nothing that a node would refuse.
import { badField, fail } from '../../contract/errors.ts';
import { fitsBytes } from '../../contract/expression/bytes.ts';
import type { Input } from '../../contract/procedure.ts';
import {
  DEFAULT_WAF_EXCLUSION,
  MAX_WAF_CONTENT_TYPES,
  MAX_WAF_EXCLUSIONS,
  MAX_WAF_NAME_BYTES,
  MAX_WAF_PATH_BYTES,
  RULES_IN_FAMILY,
  type siteWaf,
  type WafExclusion,
  type WafOfSite,
} from '../../contract/resources/site-waf.ts';
import { canonicalPath } from '../../contract/scalars/canonical-path.ts';
import { WAF_PACK_IDS } from '../../contract/waf-pack-ids.ts';
import { exclusionsOfPack, packsOf } from '../../contract/waf-packs.ts';
import { MAX_WAF_TARGETS, WAF_OWN_FAMILIES, WAF_PARTS, WAF_TAGS } from '../../contract/waf-rule-set.ts';

type Change = Input<typeof siteWaf.update>;
type GivenExclusion = NonNullable<Change['exclusions']>[number];

/** Rules, or families, named in a refusal. */
const SHOWN = 5;

/** The settings with the given fields. Throws WAF_RULE_NOT_EXCLUDABLE, and BAD_REQUEST naming the field. */
export function givenWaf(before: WafOfSite, change: Change): WafOfSite {
  const { id: _id, expectedUpdatedAt: _expected, exclusions, ...fields } = change;
  const after: WafOfSite = {
    ...before,
    ...fields,
    ...(exclusions ? { exclusions: givenExclusions(exclusions) } : {}),
  };
  const settings = {
    ...after,
    excludedRuleIds: ascending(after.excludedRuleIds),
    excludedFamilies: ascending(after.excludedFamilies),
    allowedContentTypes: distinct(after.allowedContentTypes.map((type) => type.toLowerCase())),
    allowedCharsets: distinct(after.allowedCharsets.map((charset) => charset.toLowerCase())),
    packs: WAF_PACK_IDS.filter((id) => after.packs.includes(id)),
  };
  assertExcludable(settings);
  assertFits(settings, change);
  return settings;
}

/** Exclusions and media types of packs count like those of the site. Settings that leave them alone stay valid. */
function assertFits({ exclusions, packs, allowedContentTypes: types }: WafOfSite, change: Change): void {
  if (!change.exclusions && !change.packs && !change.allowedContentTypes) return;
  const chosen = packsOf(packs);
  // The field that was sent is the one to correct.
  const at = (field: string) => (change.packs && chosen.length > 0 ? '/packs' : field);
  const whole = [...exclusions, ...chosen.flatMap(exclusionsOfPack)];
  const targets = targetsOf(whole);
  if (targets > MAX_WAF_TARGETS) badField(at('/exclusions'), 'wafTargets', { limit: MAX_WAF_TARGETS, targets });
  const added = chosen.flatMap(({ contentTypes }) => contentTypes);
  const counts: [field: string, count: number, limit: number][] = [
    ['/exclusions', whole.length, MAX_WAF_EXCLUSIONS],
    ['/allowedContentTypes', distinct([...types, ...added]).length, MAX_WAF_CONTENT_TYPES],
  ];
  for (const [field, count, limit] of counts) if (count > limit) badField(at(field), 'wafPacks', { count, limit });
}

/** Rules that exclusions concern, each as often as it has parts. */
function targetsOf(exclusions: readonly WafExclusion[]): number {
  return exclusions.reduce((sum, { tag, part }) => sum + (tag === null ? 1 : WAF_TAGS[tag]!) * WAF_PARTS[part], 0);
}

function givenExclusions(given: readonly GivenExclusion[]): WafExclusion[] {
  const exclusions = given.map((one, index) => givenExclusion(one, `/exclusions/${index}`));
  return [...new Map(exclusions.map((one) => [JSON.stringify(one), one])).values()];
}

/** One exclusion as it is saved; `at` names it in a refusal. Throws BAD_REQUEST. */
export function givenExclusion(given: GivenExclusion, at: string): WafExclusion {
  const { ruleId, tag, part, name, ...where } = { ...DEFAULT_WAF_EXCLUSION, ...given };
  if (ruleId === null && tag === null) badField(`${at}/ruleId`, 'required');
  if (ruleId !== null && tag !== null) badField(`${at}/tag`, 'forbidden');
  if (tag !== null && !Object.hasOwn(WAF_TAGS, tag)) badField(`${at}/tag`, 'wafTag');
  if (part === 'all' && name !== '') badField(`${at}/name`, 'forbidden');
  if (part !== 'all' && name === '') badField(`${at}/name`, 'required');
  if (!fitsBytes(name, MAX_WAF_NAME_BYTES)) badField(`${at}/name`, 'maxBytes', { limit: MAX_WAF_NAME_BYTES });
  if (!fitsBytes(where.path, MAX_WAF_PATH_BYTES)) badField(`${at}/path`, 'maxBytes', { limit: MAX_WAF_PATH_BYTES });
  const path = where.path && canonicalPath(where.path);
  // In one order of fields: they are compared as texts.
  return { ruleId, tag, path, pathPrefix: path !== '' && where.pathPrefix, part, name };
}

/** Throws WAF_RULE_NOT_EXCLUDABLE. */
export function assertExcludable({
  excludedRuleIds,
  excludedFamilies,
  exclusions,
}: Pick<WafOfSite, 'excludedRuleIds' | 'excludedFamilies' | 'exclusions'>): void {
  const named = [...excludedRuleIds, ...exclusions.flatMap(({ ruleId }) => ruleId ?? [])];
  const isOwn = (family: number) => WAF_OWN_FAMILIES.includes(family);
  const ids = ascending(distinct(named.filter((id) => isOwn(Math.floor(id / RULES_IN_FAMILY)))));
  const families = excludedFamilies.filter(isOwn);
  if (ids.length + families.length === 0) return;
  fail('WAF_RULE_NOT_EXCLUDABLE', {
    ids: ids.slice(0, SHOWN),
    ...(families.length > 0 ? { families: families.slice(0, SHOWN) } : {}),
  });
}

function ascending(numbers: readonly number[]): number[] {
  return numbers.toSorted((a, b) => a - b);
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
