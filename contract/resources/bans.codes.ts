import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  BAN_INVALID_CIDR: entry(400, 'Not an IP address or CIDR.'),
  BAN_PREFIX_TOO_SHORT: entry(400, 'The range is too large; data.min is the shortest prefix.'),
  BAN_EXPIRY_OUT_OF_RANGE: entry(400, 'durationSeconds is 60 to 604800.'),
  BAN_PROTECTED_ADDRESS: entry(400, 'The ban would cover a protected address.'),
  BAN_PLATFORM_LIMIT: entry(409, 'The limit of active manual bans is reached.'),
  BAN_NOT_FOUND: entry(404, 'There is no such active ban.'),
} satisfies ErrorEntries;
