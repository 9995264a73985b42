// Kind "site-waf": how requests of a site are inspected. Without an entry they are not, whatever else is saved.
import { create, toBinary } from '@bufbuild/protobuf';
import { DEFAULT_WAF, type WafExclusion, type WafOfSite } from '../../contract/resources/site-waf.ts';
import { SiteWafSchema, WafExclusionSchema, WafMode, WafPart } from '../../proto/gen/svc/config/v1/waf_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';

export const SITE_WAF_KIND = 'site-waf';

const MODES = { detect: WafMode.DETECT, block: WafMode.BLOCK } as const;
const PARTS = { all: WafPart.ALL, argument: WafPart.ARGUMENT, cookie: WafPart.COOKIE, header: WafPart.HEADER } as const;

const SAVED = { table: 'site_waf', defaults: DEFAULT_WAF };

// Settings that block more, or less, than they should are what a canary is for: nothing bypasses it.
export const siteWafKind = siteSettingsKind<WafOfSite>(SITE_WAF_KIND, SAVED, {
  compilerVersion: 1,
  // Two hundred exclusions with paths.
  maxBodyBytes: 512 * 1024,
  compile: compileEach(SAVED, compileWaf),
});

/** The entry of a site's settings; null where requests are not inspected. */
export function compileWaf(settings: WafOfSite): CompiledEntry | null {
  const { mode, exclusions } = settings;
  if (mode === 'off') return null;
  const message = create(SiteWafSchema, {
    mode: MODES[mode],
    paranoiaLevel: settings.paranoiaLevel,
    anomalyThreshold: settings.anomalyThreshold,
    requestBodyLimit: settings.requestBodyLimit,
    excludedRules: settings.excludedRuleIds,
    excludedFamilies: settings.excludedFamilies,
    exclusions: exclusions.map(exclusionMessage),
    methods: settings.allowedMethods,
    contentTypes: settings.allowedContentTypes,
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

function exclusionMessage({ ruleId, tag, path, pathPrefix, part, name }: WafExclusion) {
  const rules = ruleId === null ? ({ case: 'tag', value: tag! } as const) : ({ case: 'rule', value: ruleId } as const);
  return create(WafExclusionSchema, { rules, path, pathPrefix, part: PARTS[part], name });
}
