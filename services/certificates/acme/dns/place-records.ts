// Which values have to stand where, so that an authority believes the names.
import { createHash } from 'node:crypto';
import { type DnsCredentialRow, dnsCredentialById } from '../../../../models/certificates/dns-credential.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import { challengeName, isInside, recordName } from '../../../dns/adapters/names.ts';
import { OrderFailed } from '../failure.ts';
import { parallel } from '../parallel.ts';
import type { StepContext } from '../step.ts';
import { followAliases, type ZoneServers } from './authoritative.ts';

const LOOKUPS = 8;
const NAMES_TOLD = 20;

/** Throws OrderFailed. */
export async function credentialOf({ runtime, certificate }: StepContext): Promise<DnsCredentialRow> {
  const { dnsCredentialId } = certificate.request;
  const found = dnsCredentialId === null ? undefined : await dnsCredentialById(runtime.pools.api, dnsCredentialId);
  if (!found) throw new OrderFailed('dns_credential_not_found');
  return found;
}

export function zoneServers({ env }: Pick<Runtime, 'env'>, { zone, settings }: DnsCredentialRow): ZoneServers {
  return { zone, nameservers: settings.nameservers, allow: env.outboundAllow };
}

/**
 * Where what shows each of the names has to stand, with or without the marker of a wildcard. Throws OrderFailed where that
 * is not in the zone of the credential, and DnsFailed.
 */
export async function recordPlaces(
  { runtime, tools }: StepContext,
  credential: DnsCredentialRow,
  names: readonly string[],
): Promise<Map<string, string>> {
  const zone = zoneServers(runtime, credential);
  const places = new Map<string, string>();
  const outside: string[] = [];
  const bare = [...new Set(names.map((name) => name.replace(/^[*][.]/, '')))];
  await parallel(bare, LOOKUPS, async (name) => {
    const place = recordName(await followAliases(challengeName(name), zone, tools.resolver));
    if (place === null || !isInside(place, credential.zone)) outside.push(name);
    else places.set(name, place);
  });
  if (outside.length > 0) throw new OrderFailed('dns_zone_mismatch', { names: outside.sort().slice(0, NAMES_TOLD) });
  return places;
}

/** The value for an authorization (RFC 8555, section 8.4). */
export function recordValue(keyAuthorization: string): string {
  return createHash('sha256').update(keyAuthorization).digest('base64url');
}
