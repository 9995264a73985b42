// What a certificate is in one word.
import type { CertificateSummary } from '@contract/resources/certificates.ts';

/** The contract's CERTIFICATE_ENDING_DAYS. */
export const SOON_DAYS = 14;
const SOON_MS = SOON_DAYS * 24 * 3_600_000;

export type CertificateState = 'valid' | 'soon' | 'expired' | 'issuing' | 'failed' | 'unrenewed';

/** Whole days until a certificate expires; negative once it has. */
export const daysLeft = (notAfter: string, now: number) => Math.floor((Date.parse(notAfter) - now) / 86_400_000);

/** Of the moment `now`, Unix milliseconds. */
export function certificateState(
  { status, notAfter }: Pick<CertificateSummary, 'status' | 'notAfter'>,
  now: number,
): CertificateState {
  if (notAfter === null) return status === 'error' ? 'failed' : 'issuing';
  const left = Date.parse(notAfter) - now;
  if (left <= 0) return 'expired';
  if (status === 'error') return 'unrenewed';
  return left < SOON_MS ? 'soon' : 'valid';
}
