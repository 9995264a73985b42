// Kind "site-waf": how requests of a site are inspected. Without an entry they are not, whatever else is saved.
import { create, toBinary } from '@bufbuild/protobuf';
import { DEFAULT_WAF, type WafExclusion, type WafOfSite } from '../../contract/resources/site-waf.ts';
import { SiteWafSchema, WafExclusionSchema, WafMode, WafPart } from '../../proto/gen/svc/config/v1/waf_pb.js';
import type { CompiledEntry, EntryKind } from '../config/entry-kind.ts';
import { siteOwner } from '../config/entry-owner.ts';

export const SITE_WAF_KIND = 'site-waf';

const LIST_BATCH = 1000;

const MODES = { detect: WafMode.DETECT, block: WafMode.BLOCK } as const;
const PARTS = { all: WafPart.ALL, argument: WafPart.ARGUMENT, cookie: WafPart.COOKIE, header: WafPart.HEADER } as const;

export const siteWafKind: EntryKind = {
  kind: SITE_WAF_KIND,
  compilerVersion: 1,
  // What blocks more, or less, than it should is what a canary is for.
  bypass: false,
  onRollback: 'restore',
  defaults: DEFAULT_WAF,
  // Two hundred exclusions with paths.
  maxBodyBytes: 512 * 1024,
  scope: 'cluster',
  ownerOf: siteOwner,
  async compile(sql, clusterId, ids) {
    const { rows } = await sql.raw<{ rows: { id: string; settings: Partial<WafOfSite> }[] }>(
      'select site_id as id, settings from site_waf where cluster_id = ? and site_id = any(?)',
      [clusterId, ids as never],
    );
    const compiled = new Map<string, CompiledEntry>();
    for (const { id, settings } of rows) {
      const entry = compileWaf({ ...DEFAULT_WAF, ...settings });
      if (entry) compiled.set(id, entry);
    }
    return compiled;
  },
  async *list(sql, clusterId) {
    let after = '';
    for (;;) {
      const { rows } = await sql.raw<{ rows: { id: string }[] }>(
        'select site_id as id from site_waf where cluster_id = ? and site_id > ? order by site_id limit ?',
        [clusterId, after, LIST_BATCH],
      );
      if (rows.length === 0) return;
      yield rows.map(({ id }) => id);
      after = rows.at(-1)!.id;
    }
  },
};

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
  });
  const features = ['modsecurity-v1', ...(exclusions.length > 0 ? ['waf-exclusions-v1'] : [])];
  return { body: toBinary(SiteWafSchema, message), features, refs: [], settings };
}

function exclusionMessage({ ruleId, tag, path, pathPrefix, part, name }: WafExclusion) {
  const rules = ruleId === null ? ({ case: 'tag', value: tag! } as const) : ({ case: 'rule', value: ruleId } as const);
  return create(WafExclusionSchema, { rules, path, pathPrefix, part: PARTS[part], name });
}
