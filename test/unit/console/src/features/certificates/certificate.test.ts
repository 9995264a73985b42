import test from 'ava';
import { certificateState } from '../../../../../../console/src/features/certificates/certificate.ts';

const NOW = Date.parse('2026-11-23T12:00:00Z');
const DAY = 86_400_000;
const inDays = (days: number) => new Date(NOW + days * DAY).toISOString();

for (const [status, notAfter, state] of [
  ['ready', inDays(90), 'valid'],
  ['issuing', inDays(20), 'valid'],
  ['ready', inDays(13), 'soon'],
  ['ready', inDays(-1), 'expired'],
  ['error', inDays(13), 'failed'],
  ['error', inDays(-1), 'expired'],
  ['error', null, 'failed'],
  ['pending', null, 'issuing'],
  ['issuing', null, 'issuing'],
] as const) {
  test(`${status} until ${notAfter ?? 'it is issued'} is ${state}`, (t) =>
    t.is(certificateState({ status, notAfter }, NOW), state));
}
