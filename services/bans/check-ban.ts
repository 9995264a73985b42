// What has to hold before a ban is created; shared by bans.create and bans.preview.
import { badField, fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import { type bans, MAX_BAN_SECONDS, MIN_BAN_SECONDS } from '../../contract/resources/bans.ts';
import { type Cidr, formatCidr } from '../../contract/scalars/cidr.ts';
import { neverBannedIn, parseBanAddress } from './ban-address.ts';

export interface CheckedBan {
  cidr: Cidr;
  text: string;
  siteId: string | null;
  reason: string;
  durationSeconds: number;
}

/** What can be judged without the database. Throws BAD_REQUEST, BAN_INVALID_CIDR, BAN_PREFIX_TOO_SHORT, BAN_EXPIRY_OUT_OF_RANGE. */
export function checkBanInput(input: Input<typeof bans.create>): CheckedBan {
  const { scope, siteId, reason, durationSeconds } = input;
  if (scope === 'site' && siteId === undefined) badField('/siteId', 'required');
  if (scope === 'platform' && siteId !== undefined) badField('/siteId', 'forbidden', { scope });
  const cidr = parseBanAddress(input.cidr);
  if (durationSeconds < MIN_BAN_SECONDS || durationSeconds > MAX_BAN_SECONDS) {
    fail('BAN_EXPIRY_OUT_OF_RANGE', { min: MIN_BAN_SECONDS, max: MAX_BAN_SECONDS });
  }
  return { cidr, text: formatCidr(cidr), siteId: siteId ?? null, reason, durationSeconds };
}

/** Throws BAN_PROTECTED_ADDRESS for loopback and unspecified addresses, and for what the database found protected. */
export function assertUnprotected(cidr: Cidr, found: string | null): void {
  const address = neverBannedIn(cidr) ?? found;
  if (address !== null) fail('BAN_PROTECTED_ADDRESS', { address });
}
