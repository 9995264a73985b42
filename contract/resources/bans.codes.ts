import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  BAN_INVALID_CIDR: entry(400, '`cidr` is not a valid IP address or CIDR. Use for example 203.0.113.0/24.'),
  BAN_PREFIX_TOO_SHORT: entry(400, 'The range in `cidr` is too large. Use a prefix length of at least `data.min`.'),
  BAN_EXPIRY_OUT_OF_RANGE: entry(400, '`durationSeconds` is out of range. Use 60 to 604800.'),
  BAN_PROTECTED_ADDRESS: entry(400, 'The ban would cover a protected address. Use a range that leaves it out.'),
  BAN_PLATFORM_LIMIT: entry(
    409,
    'The limit of active manual bans is reached. Lift some, or raise `maxTotal` in the ban settings.',
  ),
  BAN_NOT_FOUND: entry(404, 'This ban does not exist or is no longer active.'),
} satisfies ErrorEntries;
