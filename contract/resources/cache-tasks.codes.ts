import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  CACHE_TASK_NOT_FOUND: entry(404, 'This cache task does not exist. Tasks are kept for 90 days.'),
  CACHE_TASK_URL_INVALID: entry(
    400,
    'Some of `urls` are not valid, or no site has their host. `data.urls` names them. Use for example https://shop.example/img/a.png.',
  ),
  CACHE_TASK_HOST_INVALID: entry(
    400,
    'Some of `hosts` are not host names. `data.hosts` names them. Use names without port and wildcard.',
  ),
  CACHE_TASK_HOST_UNKNOWN: entry(
    400,
    'No site has some of `hosts`. `data.hosts` names them. Use domains of your sites.',
  ),
  CACHE_TASK_TAG_INVALID: entry(
    400,
    'Some of `tags` are not valid. `data.tags` names them. Use 1 to 128 printable ASCII characters without commas.',
  ),
} satisfies ErrorEntries;
