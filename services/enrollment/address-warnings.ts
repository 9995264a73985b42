// What a person about to install a node should know of the addresses the node will use.
import { isIP } from 'node:net';
import type { Static } from 'typebox';
import type { EnrollmentWarning } from '../../contract/resources/enrollment-tokens.ts';
import { specialRange } from '../../proto/address-policy.ts';

type Warning = Static<typeof EnrollmentWarning>;

/** Judges literals and names that always mean this machine; resolves nothing. */
export function addressWarnings(consoleUrl: string, nodeApiUrl: string): Warning[] {
  const warnings: Warning[] = [];
  const consoleReach = reachOf(consoleUrl);
  if (consoleReach !== 'public') warnings.push(`console_url_${consoleReach}`);
  if (new URL(consoleUrl).protocol === 'http:') warnings.push('console_url_insecure');
  const nodeApiReach = reachOf(nodeApiUrl);
  if (nodeApiReach !== 'public') warnings.push(`node_api_url_${nodeApiReach}`);
  return warnings;
}

/** `local`: this machine only; `private`: a special-purpose address; names count as public. */
function reachOf(url: string): 'local' | 'private' | 'public' {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  if (host === 'localhost' || host.endsWith('.localhost')) return 'local';
  if (isIP(host) === 0) return 'public';
  const range = specialRange(host);
  if (range === '127.0.0.0/8' || range === '::1/128') return 'local';
  return range === null ? 'public' : 'private';
}
