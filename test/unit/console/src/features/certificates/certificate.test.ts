import test from 'ava';
import {
  certificateState,
  daysLeft,
  SOON_DAYS,
} from '../../../../../../console/src/features/certificates/certificate.ts';
import { CERTIFICATE_ENDING_DAYS } from '../../../../../../contract/resources/certificates.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const DAY = 86_400_000;
const inDays = (days: number) => new Date(NOW + days * DAY).toISOString();

for (const [status, notAfter, state] of [
  ['ready', inDays(90), 'valid'],
  ['issuing', inDays(20), 'valid'],
  ['ready', inDays(13), 'soon'],
  ['ready', inDays(-1), 'expired'],
  ['error', inDays(13), 'unrenewed'],
  ['error', inDays(-1), 'expired'],
  ['error', null, 'failed'],
  ['pending', null, 'issuing'],
  ['issuing', null, 'issuing'],
] as const) {
  test(`${status} until ${notAfter ?? 'it is issued'} is ${state}`, (t) =>
    t.is(certificateState({ status, notAfter }, NOW), state));
}

test('what ends soon in a badge is what the filter of the list finds', (t) => {
  t.is(SOON_DAYS, CERTIFICATE_ENDING_DAYS);
});

test('days left are whole days, and negative once a certificate has expired', (t) => {
  const days = [90, 1.5, 0.5, -0.5].map((left) => daysLeft(inDays(left), NOW));
  t.deepEqual(days, [90, 1, 0, -1]);
});
