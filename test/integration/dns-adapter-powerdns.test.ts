// The API of a real PowerDNS server.
import test from 'ava';
import { powerdnsAdapter } from '../../services/dns/adapters/powerdns/powerdns.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { startPowerdns } from '../helpers/dns/powerdns-server.ts';

adapterSuite(test, {
  kind: powerdnsAdapter,
  start: startPowerdns,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited', 'garbage'],
  page: null,
  unicode: false,
  unknownZone: 'not_found',
  conflicts: true,
});
