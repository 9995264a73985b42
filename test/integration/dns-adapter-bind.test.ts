// Signed updates and transfers against a real server of names.
import test from 'ava';
import { rfc2136Adapter } from '../../services/dns/adapters/rfc2136/rfc2136.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { startPrimary } from '../helpers/dns/primary-servers.ts';

adapterSuite(test, {
  kind: rfc2136Adapter,
  start: () => startPrimary('bind'),
  faults: ['lost', 'unanswered', 'reset'],
  page: null,
  unicode: false,
  unknownZone: 'not_found',
  conflicts: true,
});
