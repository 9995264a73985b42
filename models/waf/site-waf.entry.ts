// Kind "site-waf": how requests of a site are inspected. Without an entry they are not, whatever else is saved.
import { create, toBinary } from '@bufbuild/protobuf';
import {
  DEFAULT_WAF,
  MAX_WAF_CONTENT_TYPES,
  MAX_WAF_EXCLUSIONS,
  type WafExclusion,
  type WafOfSite,
} from '../../contract/resources/site-waf.ts';
import { exclusionsOfPack, packsOf, WAF_PACKS_VERSION } from '../../contract/waf-packs.ts';
import { WAF_CONTENT_TYPES } from '../../contract/waf-rule-set.ts';
import { SiteWafSchema, WafExclusionSchema, WafMode, WafPart } from '../../proto/gen/svc/config/v1/waf_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';

export const SITE_WAF_KIND = 'site-waf';

const MODES = { detect: WafMode.DETECT, block: WafMode.BLOCK } as const;
const PARTS = { all: WafPart.ALL, argument: WafPart.ARGUMENT, cookie: WafPart.COOKIE, header: WafPart.HEADER } as const;

const SAVED = { table: 'site_waf', defaults: DEFAULT_WAF };

// Settings that block more, or less, than they should are what a canary is for: nothing bypasses it.
export const siteWafKind = siteSettingsKind<WafOfSite>(SITE_WAF_KIND, SAVED, {
  // A new version of a pack changes entries as well.
  compilerVersion: 1 + WAF_PACKS_VERSION,
  // Two hundred exclusions with paths.
  maxBodyBytes: 512 * 1024,
  compile: compileEach(SAVED, compileWaf),
});

/** The entry of a site's settings; null where requests are not inspected. */
export function compileWaf(settings: WafOfSite): CompiledEntry | null {
  const { mode } = settings;
  if (mode === 'off') return null;
  const exclusions = withPacks(settings);
  const message = create(SiteWafSchema, {
    mode: MODES[mode],
    paranoiaLevel: settings.paranoiaLevel,
    anomalyThreshold: settings.anomalyThreshold,
    requestBodyLimit: settings.requestBodyLimit,
    excludedRules: settings.excludedRuleIds,
    excludedFamilies: settings.excludedFamilies,
    exclusions: exclusions.map(exclusionMessage),
    methods: settings.allowedMethods,
    contentTypes: contentTypes(settings),
    charsets: settings.allowedCharsets,
    eventValues: settings.eventValues,
    withoutExceptions: !settings.builtInExceptions,
  });
  const features = [
    'modsecurity-v1',
    ...(exclusions.length > 0 ? ['waf-exclusions-v1'] : []),
    // Older nodes have no exceptions to switch off, or do not know the switch.
    ...(settings.builtInExceptions ? [] : ['waf-exceptions-v1']),
  ];
  return { body: toBinary(SiteWafSchema, message), features, refs: [], settings };
}

/** Those of the site, then those of its packs. A later version of a pack can have more than fit: nodes get as many as they take. */
function withPacks({ exclusions, packs }: WafOfSite): WafExclusion[] {
  return [...exclusions, ...packsOf(packs).flatMap(exclusionsOfPack)].slice(0, MAX_WAF_EXCLUSIONS);
}

/** Those of packs stand beside the site's own, or the defaults. */
function contentTypes({ allowedContentTypes: own, packs }: WafOfSite): string[] {
  const added = packsOf(packs).flatMap(({ contentTypes }) => contentTypes);
  if (added.length === 0) return own;
  return [...new Set([...(own.length > 0 ? own : WAF_CONTENT_TYPES), ...added])].slice(0, MAX_WAF_CONTENT_TYPES);
}

function exclusionMessage({ ruleId, tag, path, pathPrefix, part, name }: WafExclusion) {
  const rules = ruleId === null ? ({ case: 'tag', value: tag! } as const) : ({ case: 'rule', value: ruleId } as const);
  return create(WafExclusionSchema, { rules, path, pathPrefix, part: PARTS[part], name });
}
