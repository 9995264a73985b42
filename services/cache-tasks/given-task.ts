// What a task is to do, checked as far as nothing stored is needed.
import { badField, fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import { type cacheTasks, MAX_TAG_BYTES } from '../../contract/resources/cache-tasks.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import { type TaskUrl, taskUrl } from '../../models/cache/task-url.ts';

type Given = Input<typeof cacheTasks.create>;
type Type = Given['type'];

export interface GivenTask {
  type: Type;
  urls: TaskUrl[];
  hosts: string[];
  siteIds: string[];
  tags: string[];
  variants: ('desktop' | 'mobile')[];
  maxUrls: number | null;
}

const FIELDS = ['urls', 'siteIds', 'hosts', 'tags', 'variants', 'maxUrls'] as const;
type Field = (typeof FIELDS)[number];

/** Fields of each type: those that it needs, and those that it may have. */
const TAKES: Readonly<Record<Type, { needs: readonly Field[]; may?: readonly Field[] }>> = {
  url: { needs: ['urls'] },
  prefix: { needs: ['urls'] },
  site: { needs: ['siteIds'] },
  host: { needs: ['hosts'] },
  tag: { needs: ['siteIds', 'tags'] },
  prefetch: { needs: ['urls'], may: ['variants'] },
  sitemap: { needs: ['urls'], may: ['variants', 'maxUrls'] },
};
const DEFAULT_MAX_URLS = 1000;
const SHOWN = 10;

/** Throws BAD_REQUEST and the errors of URLs, hosts and tags that are not valid. */
export function givenTask(input: Given): GivenTask {
  const { type } = input;
  const { needs, may = [] } = TAKES[type];
  for (const field of needs) if (input[field] === undefined) badField(`/${field}`, 'required');
  for (const field of FIELDS)
    if (input[field] !== undefined && !needs.includes(field) && !may.includes(field))
      badField(`/${field}`, 'forbidden', { type });
  const { urls = [], hosts = [], siteIds = [], tags = [], maxUrls = DEFAULT_MAX_URLS } = input;
  if (type === 'sitemap' && urls.length > 1) badField('/urls', 'maxItems', { limit: 1 });
  const isPrefetch = type === 'prefetch' || type === 'sitemap';
  return {
    type,
    urls: distinct(
      all(urls, (text) => urlOf(text, type), 'CACHE_TASK_URL_INVALID', 'urls'),
      ({ text }) => text,
    ),
    hosts: [...new Set(all(hosts, hostOf, 'CACHE_TASK_HOST_INVALID', 'hosts'))],
    siteIds: [...new Set(siteIds)],
    tags: [...new Set(all(tags, tagOf, 'CACHE_TASK_TAG_INVALID', 'tags'))],
    variants: isPrefetch ? [...new Set(input.variants ?? (['desktop'] as const))] : [],
    maxUrls: type === 'sitemap' ? maxUrls : null,
  };
}

type Code = 'CACHE_TASK_URL_INVALID' | 'CACHE_TASK_HOST_INVALID' | 'CACHE_TASK_TAG_INVALID';

/** Each text as it is taken; throws the code with the texts that are not. */
function all<T>(texts: readonly string[], read: (text: string) => T | null, code: Code, name: string): T[] {
  const taken = texts.map(read);
  const bad = texts.filter((_, index) => taken[index] === null);
  if (bad.length > 0) fail(code, { [name]: bad.slice(0, SHOWN) });
  return taken.filter((one) => one !== null);
}

function distinct<T>(list: readonly T[], key: (one: T) => string): T[] {
  return [...new Map(list.map((one) => [key(one), one])).values()];
}

function urlOf(text: string, type: Type): TaskUrl | null {
  const url = taskUrl(text);
  return url && (type !== 'prefix' || url.query === '') ? url : null;
}

/** A name alone: a port, a wildcard, or anything of a URL makes it another thing. */
function hostOf(text: string): string | null {
  return normaliseHostName(text.trim());
}

function tagOf(text: string): string | null {
  const tag = text.trim().toLowerCase();
  return /^[ -~]+$/.test(tag) && !tag.includes(',') && tag.length <= MAX_TAG_BYTES ? tag : null;
}
