// What nodes store of a site's responses: cache rules, and the settings of the cache.
import Type, { type Static, type TSchema } from 'typebox';
import { MAX_EXTENSIONS, MAX_PATH_PREFIXES, MAX_PATHS } from '../expression/cache-builder.ts';
import { MAX_CACHE_CONDITION } from '../expression/limits.ts';
import { OneOf } from '../scalars/common.ts';

export const MAX_CACHE_RULES = 64;
export const MAX_PRIORITY = 10_000;
export const MAX_STATUS_CODES = 16;
export const MAX_KEY_PARAMS = 32;
export const MAX_KEY_NAMES = 8;
export const CACHE_ACTIONS = ['cache', 'bypass'] as const;
export const ORIGIN_CACHE_CONTROL = ['respect', 'override'] as const;
export const KEY_QUERIES = ['all', 'ignore', 'include', 'exclude'] as const;

const PARAMETER = '^[^\\u0000-\\u0020\\u007f&=#*]{1,127}\\*?$';
const TOKEN = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$";
const YEAR_SECONDS = 31_536_000;
const MONTH_SECONDS = 2_592_000;
const Path = Type.String({ minLength: 1, maxLength: 1024, pattern: '^/[^\\u0000-\\u001f\\u007f]*$' });
const Seconds = (maximum: number, description: string, usual = 0) =>
  Type.Integer({ minimum: 0, maximum, default: usual, description });
const Bytes = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description });

const priority = Type.Integer({
  minimum: 0,
  maximum: MAX_PRIORITY,
  description: 'Place of the rule: lower ones are tried first. Unique within the site. Default: 10, 20, … in order.',
});
const ruleFields = {
  expression: Type.String({
    default: '',
    maxLength: MAX_CACHE_CONDITION,
    description:
      'Condition on the request as the client sent it. Empty: `pathPrefixes`, `paths` and `extensions` make it; they ' +
      'must be empty or say the same otherwise.',
  }),
  pathPrefixes: Type.Array(Path, {
    default: [],
    maxItems: MAX_PATH_PREFIXES,
    description: 'Beginnings of paths. Of several given lists, a request must match one item of each.',
  }),
  paths: Type.Array(Path, { default: [], maxItems: MAX_PATHS, description: 'Exact paths.' }),
  extensions: Type.Array(Type.String({ pattern: '^\\.?[A-Za-z0-9]{1,16}$' }), {
    default: [],
    maxItems: MAX_EXTENSIONS,
    description: 'File extensions; returned in lower case, without the dot. Example: css.',
  }),
  statusCodes: Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
    default: [],
    maxItems: MAX_STATUS_CODES,
    description:
      'Statuses of responses that the rule is about; 206 counts as 200. Empty: any status to bypass, and 200, 203, 206, ' +
      '300, 301 and 308 to cache.',
  }),
  minSizeBytes: Bytes(
    'Smallest response that the rule is about, in bytes; 0: any. A response of unknown size has none.',
  ),
  maxSizeBytes: Bytes(
    'Largest response that the rule is about, in bytes; 0: any. A response of unknown size has none.',
  ),
  action: {
    ...OneOf(CACHE_ACTIONS, { description: 'cache: responses are stored. bypass: they are not. Default cache.' }),
    default: 'cache',
  },
  edgeTtlSeconds: Seconds(YEAR_SECONDS, 'How long a stored response is fresh, in seconds; 0: it is not stored.', 3600),
  originCacheControl: {
    ...OneOf(ORIGIN_CACHE_CONTROL, {
      description:
        'respect: `edgeTtlSeconds` is for responses with neither Cache-Control nor Expires; else the origin decides. ' +
        'override: `edgeTtlSeconds` is for all, also with no-store and private. Default respect.',
    }),
    default: 'respect',
  },
  staleWhileRevalidateSeconds: Seconds(
    MONTH_SECONDS,
    'How long a stale response is still sent while it is revalidated, in seconds.',
  ),
  staleIfErrorSeconds: Seconds(
    MONTH_SECONDS,
    'How long a stale response is still sent while origins fail, in seconds.',
  ),
  cacheAuthorized: Type.Boolean({ default: false, description: 'Whether requests with Authorization are cached.' }),
  cacheSetCookie: Type.Boolean({
    default: false,
    description: 'Whether responses with Set-Cookie are stored. Cached responses never carry the cookies.',
  }),
  browserTtlSeconds: Seconds(
    YEAR_SECONDS,
    '`max-age` in the Cache-Control header that visitors get, in seconds; 0: the header of the origin stays.',
  ),
};

export const CacheRule = Type.Object({ priority, ...ruleFields });
export type CacheRule = Static<typeof CacheRule>;

/** Fields with a default are filled in where they are left out. */
export const CacheRuleInput = Type.Object(
  {
    priority: Type.Optional(priority),
    ...(Object.fromEntries(
      Object.entries(ruleFields).map(([name, schema]) => [name, Type.Optional(schema as TSchema)]),
    ) as unknown as typeof ruleFields),
  },
  { additionalProperties: false },
);
export type CacheRuleInput = Static<typeof CacheRuleInput>;

export const CacheRules = Type.Array(CacheRule, {
  maxItems: MAX_CACHE_RULES,
  description:
    'By ascending priority. The first rule that matches the request and the response decides; without one the response ' +
    'is not stored.',
});
export const CacheRulesInput = Type.Array(CacheRuleInput, {
  maxItems: MAX_CACHE_RULES,
  description: 'Replaces all cache rules of the site. Nodes need the capability `cache-v1`.',
});

const KeyNames = (description: string) =>
  Type.Array(Type.String({ pattern: TOKEN }), { default: [], maxItems: MAX_KEY_NAMES, uniqueItems: true, description });
const keyFields = {
  query: {
    ...OneOf(KEY_QUERIES, {
      description:
        'Which parameters distinguish responses. include: only those of `queryParams`. exclude: all but those. Default all.',
    }),
    default: 'all',
  },
  queryParams: Type.Array(Type.String({ pattern: PARAMETER }), {
    default: [],
    maxItems: MAX_KEY_PARAMS,
    uniqueItems: true,
    description: 'Names of parameters, with `query` include or exclude. A name that ends in * stands for a prefix.',
  }),
  sortQuery: Type.Boolean({ default: false, description: 'Whether the order of parameters makes no difference.' }),
  headers: KeyNames('Request headers that distinguish responses; returned in lower case. Not allowed: cookie, host.'),
  cookies: KeyNames('Cookies that distinguish responses. A request whose cookie is ambiguous is not cached.'),
  deviceType: Type.Boolean({
    default: false,
    description: 'Whether phones and tablets have responses of their own, by User-Agent.',
  }),
  includeHost: Type.Boolean({ default: true, description: 'Whether each host of the site has responses of its own.' }),
};
const CacheKey = Type.Object(keyFields);
export const DEFAULT_CACHE_KEY = defaultsOf(keyFields) as Static<typeof CacheKey>;

const rangeSlice = Type.Boolean({
  default: false,
  description: 'Whether responses are fetched and stored in slices of 1 MiB.',
});
const keepCacheTag = Type.Boolean({
  description:
    'Whether visitors get the Cache-Tag header of the origin. Default false; an update that omits it keeps it.',
});
const xCache = Type.Boolean({
  description:
    'Whether the X-Cache header says how the cache was used: HIT, MISS, BYPASS, EXPIRED, STALE, UPDATING or ' +
    'REVALIDATED. Default true; an update that omits it keeps it.',
});
const purgeEnabled = Type.Boolean({
  description: 'Whether PURGE requests with the key in X-Purge-Key purge their URL. Otherwise origins get them.',
});

export const CacheSettings = Type.Object({
  cacheKey: CacheKey,
  rangeSlice,
  keepCacheTag,
  xCache,
  purgeMethod: Type.Object({
    enabled: purgeEnabled,
    keySet: Type.Boolean({ description: 'Whether a key is saved. The key itself is never returned.' }),
  }),
});
export type CacheSettings = Static<typeof CacheSettings>;

export const CacheSettingsInput = Type.Object(
  {
    cacheKey: Type.Optional(Type.Partial(CacheKey, { additionalProperties: false, default: DEFAULT_CACHE_KEY })),
    rangeSlice: Type.Optional(rangeSlice),
    keepCacheTag: Type.Optional(keepCacheTag),
    xCache: Type.Optional(xCache),
    purgeMethod: Type.Optional(
      Type.Object(
        {
          enabled: purgeEnabled,
          key: Type.Optional(
            Type.String({
              pattern: '^[!-~]{16,256}$',
              description: 'Key of 16 to 256 printable ASCII characters; omitted: the saved key stays. Write-only.',
            }),
          ),
        },
        { additionalProperties: false, description: 'An update that omits it keeps it.' },
      ),
    ),
  },
  { additionalProperties: false },
);
export type CacheSettingsInput = Static<typeof CacheSettingsInput>;

/** What a site without saved settings has. */
export const DEFAULT_CACHE_SETTINGS: CacheSettings = {
  cacheKey: DEFAULT_CACHE_KEY,
  rangeSlice: false,
  keepCacheTag: false,
  xCache: true,
  purgeMethod: { enabled: false, keySet: false },
};

/** A rule of which nothing but its condition was given. */
export const DEFAULT_CACHE_RULE: Omit<CacheRule, 'priority'> = defaultsOf(ruleFields) as Omit<CacheRule, 'priority'>;

function defaultsOf(fields: Readonly<Record<string, object>>): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => [name, (schema as { default?: unknown }).default]),
  );
}
