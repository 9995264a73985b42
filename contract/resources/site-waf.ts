import Type, { type Static } from 'typebox';
import { WAF_PRESETS } from '../presets.ts';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { WAF_PACK_IDS } from '../waf-pack-ids.ts';
import { WAF_CHARSETS, WAF_CONTENT_TYPES, WAF_METHODS, WAF_PARTS, type WafPart } from '../waf-rule-set.ts';
import { range } from './rule-hits.ts';

export const MAX_EXCLUDED_RULES = 200;
export const MAX_EXCLUDED_FAMILIES = 20;
export const MAX_WAF_EXCLUSIONS = 200;
export const MAX_WAF_METHODS = 32;
export const MAX_WAF_CONTENT_TYPES = 64;
export const MAX_WAF_CHARSETS = 32;
export const MAX_WAF_PATH_BYTES = 1024;
export const MAX_WAF_NAME_BYTES = 256;
const FIRST_RULE = 900_000;
const LAST_RULE = 999_999;
export const RULES_IN_FAMILY = 1000;
const MAX_BODY_LIMIT = 134_217_728;
/** The most exclusions of the largest size, also where a JSON encoder escapes each character. */
const BODY_LIMIT = 2 * 1024 * 1024;

export const WAF_MODES = ['off', 'detect', 'block'] as const;

/** What names of methods, media types and charsets are made of, without what lists of the rule set are divided by. */
const token = (letters: string) => `[${letters}0-9!#$&'*+.^_~-]{1,127}`;
const TEXT = '[^\\u0000-\\u001f\\u007f]*';

export const RuleId = Type.Integer({ minimum: FIRST_RULE, maximum: LAST_RULE, examples: [942_100] });

const exclusion = {
  ruleId: { ...Nullable(RuleId), description: 'ID of the excluded rule; null with a tag.' },
  tag: {
    ...Nullable(Type.String({ minLength: 1, maxLength: 127, examples: ['attack-sqli'] })),
    description: 'Excludes all rules with this tag; null with a rule ID.',
  },
  path: Type.String({
    maxLength: MAX_WAF_PATH_BYTES,
    pattern: `^(/${TEXT})?$`,
    examples: ['/editor'],
    description:
      'Path of the exclusion, decoded, at most 1024 bytes; empty: any path. Stored in canonical form, as ' +
      'rules see it.',
  }),
  pathPrefix: Type.Boolean({ description: 'Whether the exclusion also applies to paths that begin with `path`.' }),
  part: OneOf(Object.keys(WAF_PARTS) as WafPart[], {
    description:
      'Part of the request that the rules skip. all: the whole request. argument, cookie, header: the name ' +
      'and value of one of them.',
  }),
  name: Type.String({
    maxLength: MAX_WAF_NAME_BYTES,
    pattern: `^${TEXT}$`,
    examples: ['items.*.text'],
    description:
      'Name of the argument, cookie or header, case-insensitive, at most 256 bytes; empty with `all`. A ' +
      '"*" between two dots, or after the last one, stands for an array index.',
  }),
};

const EXCLUSIONS = 'Parts of requests that rules skip.';

const settings = {
  mode: OneOf(WAF_MODES, { description: 'detect: attacks are recorded and passed on; block: attacks receive 403.' }),
  paranoiaLevel: Type.Integer({
    minimum: 1,
    maximum: 4,
    description: 'Paranoia level. Higher levels have more rules and more false positives.',
  }),
  anomalyThreshold: Type.Integer({
    minimum: 1,
    maximum: 1000,
    description:
      'Score at which a request counts as an attack. Rules add 5 (critical), 4 (error), 3 (warning) or 2 ' +
      '(notice).',
  }),
  requestBodyLimit: Type.Integer({
    minimum: 0,
    maximum: MAX_BODY_LIMIT,
    description: 'Number of request body bytes that are inspected; the rest passes uninspected. 0: none.',
  }),
  excludedRuleIds: Type.Array(RuleId, {
    maxItems: MAX_EXCLUDED_RULES,
    uniqueItems: true,
    description: 'IDs of disabled rules, ascending. Not allowed: 901xxx, 949xxx, 959xxx, 980xxx.',
  }),
  excludedFamilies: Type.Array(
    Type.Integer({
      minimum: FIRST_RULE / RULES_IN_FAMILY,
      maximum: Math.floor(LAST_RULE / RULES_IN_FAMILY),
      examples: [933],
    }),
    {
      maxItems: MAX_EXCLUDED_FAMILIES,
      uniqueItems: true,
      description: 'Disabled rules by the first three digits of their IDs, ascending. Not allowed: 901, 949, 959, 980.',
    },
  ),
  exclusions: Type.Array(
    Type.Object(exclusion, {
      examples: [{ ruleId: 942_100, tag: null, path: '/editor', pathPrefix: true, part: 'argument', name: 'content' }],
    }),
    { maxItems: MAX_WAF_EXCLUSIONS, description: EXCLUSIONS },
  ),
  allowedMethods: Type.Array(
    Type.String({ minLength: 1, maxLength: 127, pattern: `^${token('A-Z')}$`, examples: ['PROPFIND'] }),
    {
      maxItems: MAX_WAF_METHODS,
      uniqueItems: true,
      description: `Methods that raise no match; empty: ${WAF_METHODS.join(', ')}.`,
    },
  ),
  allowedContentTypes: Type.Array(
    Type.String({
      minLength: 3,
      maxLength: 255,
      pattern: `^${token('A-Za-z')}/${token('A-Za-z')}$`,
      examples: ['application/json'],
    }),
    {
      maxItems: MAX_WAF_CONTENT_TYPES,
      description: `Media types of bodies that raise no match, without parameters; empty: ${WAF_CONTENT_TYPES.join(', ')}.`,
    },
  ),
  allowedCharsets: Type.Array(
    Type.String({ minLength: 1, maxLength: 127, pattern: `^${token('A-Za-z')}$`, examples: ['utf-8'] }),
    {
      maxItems: MAX_WAF_CHARSETS,
      description: `Charsets of bodies that raise no match; empty: ${WAF_CHARSETS.join(', ')}.`,
    },
  ),
  packs: Type.Array(OneOf(WAF_PACK_IDS), {
    maxItems: WAF_PACK_IDS.length,
    uniqueItems: true,
    examples: [['wordpress']],
    description:
      'Packs of exclusions for applications, see `GET /sites/{id}/waf/packs`. They count towards the limits of `exclusions`.',
  }),
  builtInExceptions: Type.Boolean({
    description:
      'Whether the built-in exceptions of nodes suppress matches of rules of paranoia level 1 in ordinary text, such as prose ' +
      'that begins with the name of a program.',
  }),
  eventValues: Type.Boolean({
    description:
      'Whether events include masked matches from arguments and headers. Letters become x and digits 0; ' +
      'attack words and punctuation stay. Cookies and fields with secret-like names are never included.',
  }),
};

const WafOfSite = Type.Object(settings);
/** What a site has of its own. */
export type WafOfSite = Static<typeof WafOfSite>;
/** An exclusion, complete. */
export const SavedExclusion = Type.Object(exclusion);
export type WafExclusion = WafOfSite['exclusions'][number];

/** What a site has until it is changed. */
export const DEFAULT_WAF: WafOfSite = {
  mode: 'off',
  ...WAF_PRESETS.standard,
  excludedRuleIds: [],
  excludedFamilies: [],
  exclusions: [],
  allowedMethods: [],
  allowedContentTypes: [],
  allowedCharsets: [],
  packs: [],
  builtInExceptions: true,
  eventValues: false,
};

/** What an exclusion has where it says nothing. */
export const DEFAULT_WAF_EXCLUSION: WafExclusion = {
  ruleId: null,
  tag: null,
  path: '',
  pathPrefix: false,
  part: 'all',
  name: '',
};

export const GivenExclusion = Type.Object(
  {
    ruleId: Type.Optional(exclusion.ruleId),
    tag: Type.Optional(exclusion.tag),
    path: Type.Optional({ ...exclusion.path, default: '' }),
    pathPrefix: Type.Optional({ ...exclusion.pathPrefix, default: false }),
    part: Type.Optional({ ...exclusion.part, default: 'all' }),
    name: Type.Optional({ ...exclusion.name, default: '' }),
  },
  {
    additionalProperties: false,
    description: 'Either a rule ID or a tag.',
    examples: [{ ruleId: 942_100, path: '/editor', pathPrefix: true, part: 'argument', name: 'content' }],
  },
);

const state = {
  siteId: Id,
  ...settings,
  updatedAt: { ...Nullable(Timestamp), description: 'null: never saved.' },
};

export const SiteWaf = Type.Object(state);
export const SavedSiteWaf = Type.Object({
  ...state,
  revision: Nullable({
    ...Decimal,
    description: 'Revision that publishes the change; null if nothing changed for nodes.',
  }),
});

export const TopWafRule = Type.Object({ ruleId: RuleId, requests: Type.Integer({ minimum: 0 }) });
const TopWafRules = Type.Object({
  approximate: Type.Literal(true, {
    description:
      'Always true: nodes count only the 20 rules of a site that matched most in each minute, and report ' +
      'within 2 minutes.',
  }),
  items: Type.Array(TopWafRule, {
    description: 'Most matches first, without 901xxx, 949xxx, 959xxx and 980xxx.',
  }),
});

export const siteWaf = resource('sites.waf', {
  get: procedure({
    method: 'GET',
    path: '/sites/{id}/waf',
    summary: 'Returns the WAF settings of a site.',
    input: Input({ id: Id }),
    output: SiteWaf,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
  update: procedure({
    method: 'PATCH',
    path: '/sites/{id}/waf',
    summary: 'Changes the given WAF settings of a site, each as a whole; omitted fields keep their values.',
    input: Input({
      id: Id,
      ...Type.Partial(WafOfSite).properties,
      exclusions: Type.Optional(Type.Array(GivenExclusion, { maxItems: MAX_WAF_EXCLUSIONS, description: EXCLUSIONS })),
      expectedUpdatedAt: Type.Optional({ ...Nullable(Timestamp), description: 'null: never saved.' }),
    }),
    output: SavedSiteWaf,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'site.waf_update',
    idempotency: 'accepted',
    bodyLimit: BODY_LIMIT,
    errors: ['SITE_NOT_FOUND', 'WAF_RULE_NOT_EXCLUDABLE', 'UPDATED_AT_MISMATCH'],
  }),
  topRules: procedure({
    method: 'GET',
    path: '/sites/{id}/waf/rules',
    summary: 'Lists the WAF rules that matched most on a site, with counts.',
    input: Input({
      id: Id,
      range,
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 10 })),
    }),
    output: TopWafRules,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});
