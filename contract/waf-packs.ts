// Packs: exclusions of the WAF that an application needs, with their reasons. waf-packs.json has all of them. A change of a
// pack raises its version. Tests of the edge send requests of the applications (agents/caddy/features/waf/packs_test.go).
import type { WafPackId } from './waf-pack-ids.ts';
import DATA from './waf-packs.json' with { type: 'json' };
import type { WafPart } from './waf-rule-set.ts';

/** Each rule is excluded at each path for each name, or for the whole request without names. */
export interface PackPart {
  /** Rule IDs and tags. */
  readonly rules: readonly (number | string)[];
  readonly paths: readonly string[];
  readonly pathPrefix: boolean;
  readonly part: WafPart;
  readonly names: readonly string[];
  readonly reason: Readonly<Record<'en' | 'zh-CN', string>>;
}

export interface WafPack {
  readonly id: WafPackId;
  /** As the application is written, in all languages. */
  readonly name: string;
  readonly version: number;
  /** Version of the application whose documentation the pack follows. */
  readonly documented: string;
  /** Media types that the site takes besides its own. */
  readonly contentTypes: readonly string[];
  /** Where the exclusions are for any path: ends of paths that show the application. Empty: any. */
  readonly pathEnds: readonly string[];
  readonly exclusions: readonly PackPart[];
}

interface PackExclusion {
  ruleId: number | null;
  tag: string | null;
  path: string;
  pathPrefix: boolean;
  part: WafPart;
  name: string;
}

export const WAF_PACKS = DATA as readonly WafPack[];

/** Compiled entries follow the packs: their version rises with that of any pack. */
export const WAF_PACKS_VERSION = WAF_PACKS.reduce((sum, { version }) => sum + version, 0);

/** The packs with these IDs, in their own order; of an unknown ID there is none. */
export function packsOf(ids: readonly string[]): WafPack[] {
  return WAF_PACKS.filter(({ id }) => ids.includes(id));
}

export function exclusionsOfPack({ exclusions }: Pick<WafPack, 'exclusions'>): PackExclusion[] {
  return exclusions.flatMap(exclusionsOfPart);
}

export function exclusionsOfPart({ rules, paths, pathPrefix, part, names }: PackPart): PackExclusion[] {
  const named = names.length > 0 ? names : [''];
  return paths.flatMap((path) =>
    named.flatMap((name) =>
      rules.map((rule) => {
        const target = typeof rule === 'number' ? { ruleId: rule, tag: null } : { ruleId: null, tag: rule };
        return { ...target, path, pathPrefix, part, name };
      }),
    ),
  );
}
