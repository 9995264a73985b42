// What more an authority can be asked for with a certificate that it issues.
import { MAX_CERTIFICATE_NAMES } from '../../contract/resources/certificates.ts';
import type { CertificateRow } from './certificate.ts';

/** Those of the names that its next order can have beside what it is asked for already, in their order. */
export function askableNames(
  { requestedNames, autoRenew, challenge }: Pick<CertificateRow, 'requestedNames' | 'autoRenew' | 'challenge'>,
  names: readonly string[],
): string[] {
  if (requestedNames === null || !autoRenew) return [];
  // An authority takes the word of DNS alone for a wildcard.
  const provable = names.filter((name) => challenge === 'dns01' || !name.startsWith('*.'));
  const more = provable.filter((name) => !requestedNames.includes(name));
  return more.slice(0, Math.max(MAX_CERTIFICATE_NAMES - requestedNames.length, 0));
}
