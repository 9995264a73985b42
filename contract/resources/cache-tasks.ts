// Tasks for stored responses: purges, and prefetches.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';

export const PURGE_TYPES = ['url', 'prefix', 'site', 'host', 'tag'] as const;
export const CACHE_TASK_TYPES = ['url', 'prefix', 'site', 'prefetch', 'host', 'tag', 'sitemap'] as const;
export const CACHE_TASK_STATES = ['pending', 'running', 'succeeded', 'failed'] as const;
export const CACHE_VARIANTS = ['desktop', 'mobile'] as const;
export const MAX_TASK_URLS = 500;
export const MAX_TASK_HOSTS = 500;
export const MAX_TASK_SITES = 100;
export const MAX_TASK_TAGS = 500;
export const MAX_TAG_BYTES = 128;
const MAX_URL = 2048;

const TaskType = OneOf(CACHE_TASK_TYPES, {
  description:
    'url: purges `urls`. prefix: purges every path that begins with one of `urls`. site: purges all of `siteIds`. host: ' +
    'purges all of `hosts`. tag: purges responses of `siteIds` with one of `tags` in `Cache-Tag`. prefetch: ' +
    'fetches `urls` into the cache of each node. sitemap: fetches the URLs of a sitemap.',
});
const Variants = Type.Array(OneOf(CACHE_VARIANTS), { maxItems: 2 });

const NodeResult = Type.Object({
  nodeId: Id,
  nodeName: Type.String(),
  state: OneOf(['pending', 'running', 'succeeded', 'failed', 'skipped']),
  message: Type.String({ description: 'Empty unless the task failed on the node or was skipped.' }),
  errorCode: Nullable(
    OneOf(
      [
        'task_unsupported',
        'task_expired',
        'node_disabled',
        'prefetch_failed',
        'prefetch_timeout',
        'sitemap_failed',
        'sitemap_empty',
      ],
      {
        description:
          'task_unsupported: the node lacks a capability. task_expired: the node was away for 7 days. node_disabled: the node is ' +
          'disabled. prefetch_failed: URLs could not be fetched. prefetch_timeout: the time ended before all URLs were fetched. ' +
          'sitemap_failed: a sitemap could not be read. sitemap_empty: the sitemap has no URL of the site.',
      },
    ),
  ),
  errorParams: Type.Record(Type.String(), Type.String()),
  succeeded: Type.Integer({ minimum: 0, description: 'Prefetched URLs so far; 0 for purges.' }),
  failed: Type.Integer({ minimum: 0, description: 'URLs that could not be prefetched; 0 for purges.' }),
  finishedAt: {
    ...Nullable(Timestamp),
    description: 'When the node reported the purge, or a later one, as in force, or the end of the prefetch.',
  },
  recoveredAt: {
    ...Nullable(Timestamp),
    description: 'When a node on which the task expired was back, with its sites purged as a whole.',
  },
});
export type CacheTaskNode = Static<typeof NodeResult>;

export const CacheTask = Type.Object({
  id: Id,
  type: TaskType,
  targets: Type.Array(Type.String(), {
    description: 'URLs, prefixes, names of sites, hosts or tags of the task, as they were normalized.',
  }),
  sites: Type.Array(Type.Object({ id: Id, name: Type.String() })),
  variants: Variants,
  maxUrls: Nullable(Type.Integer({ description: 'Of a sitemap; null for other types.' })),
  state: OneOf(CACHE_TASK_STATES, {
    description:
      'pending: no node has finished. running: some have. succeeded: all have, or were skipped. failed: it ended and failed on a node.',
  }),
  nodes: Type.Array(NodeResult, { description: 'Results of each node of the clusters, by name.' }),
  source: OneOf(['user', 'recovery', 'purge_method']),
  createdByName: Type.String(),
  createdAt: Timestamp,
  finishedAt: Nullable(Timestamp),
});
export type CacheTask = Static<typeof CacheTask>;

const given = {
  type: TaskType,
  urls: Type.Optional(
    Type.Array(Type.String({ maxLength: MAX_URL }), {
      minItems: 1,
      maxItems: MAX_TASK_URLS,
      description:
        'For url, prefix and prefetch; exactly one for sitemap. Absolute URLs. Scheme and port make no difference to purges. A prefix has no query.',
    }),
  ),
  siteIds: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MAX_TASK_SITES, description: 'For site and tag.' })),
  hosts: Type.Optional(
    Type.Array(Type.String({ maxLength: 1024 }), {
      minItems: 1,
      maxItems: MAX_TASK_HOSTS,
      description: 'For host. Host names without port and wildcard.',
    }),
  ),
  tags: Type.Optional(
    Type.Array(Type.String({ maxLength: 1024 }), {
      minItems: 1,
      maxItems: MAX_TASK_TAGS,
      description: 'For tag. 1 to 128 printable ASCII characters without commas; case makes no difference.',
    }),
  ),
  variants: Type.Optional({
    ...Variants,
    minItems: 1,
    description: 'For prefetch and sitemap. Default: desktop.',
  }),
  maxUrls: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 10_000, description: 'For sitemap: URLs to fetch at most. Default: 1000.' }),
  ),
};

const EXAMPLE = { type: 'prefix', urls: ['https://shop.example/img/'] };

const reads = { method: 'GET', status: 200, readOnly: true, audit: null, idempotency: 'accepted' } as const;

export const cacheTasks = resource('cacheTasks', {
  list: procedure({
    ...reads,
    path: '/cache-tasks',
    summary: 'Lists cache tasks, newest first.',
    input: Input({
      siteId: Type.Optional({ ...Id, description: 'Site that a task concerns.' }),
      ...PageQuery(20),
    }),
    output: Page(CacheTask),
    access: 'operator',
    errors: [],
  }),
  get: procedure({
    ...reads,
    path: '/cache-tasks/{id}',
    summary: 'Returns a cache task with the result of each node.',
    input: Input({ id: Id }),
    output: CacheTask,
    access: 'operator',
    errors: ['CACHE_TASK_NOT_FOUND'],
  }),
  create: procedure({
    method: 'POST',
    path: '/cache-tasks',
    summary: 'Creates a cache task. Purges need the capability `purge-tag-v1`, prefetches `prefetch-v2`.',
    input: Input(given, { examples: [EXAMPLE] }),
    output: CacheTask,
    status: 201,
    bodyLimit: 4 * 1024 * 1024,
    access: 'operator',
    readOnly: false,
    audit: ['cache.purge', 'cache.prefetch'],
    idempotency: 'accepted',
    errors: [
      'CACHE_TASK_URL_INVALID',
      'CACHE_TASK_HOST_INVALID',
      'CACHE_TASK_HOST_UNKNOWN',
      'CACHE_TASK_TAG_INVALID',
      'SITE_NOT_FOUND',
      'SITE_DISABLED',
    ],
  }),
});

export const sitePurge = resource('sites', {
  purgeAll: procedure({
    method: 'POST',
    path: '/sites/{id}/purge',
    summary: 'Purges all stored responses of a site.',
    input: Input({ id: Id }),
    output: CacheTask,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'site.purge_all',
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND', 'SITE_DISABLED'],
  }),
});
