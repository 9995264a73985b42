// Route 53's API, against moto.
import test from 'ava';
import { route53Adapter } from '../../services/dns/adapters/route53/route53.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { startMoto } from '../helpers/dns/moto-server.ts';

adapterSuite(test, {
  kind: route53Adapter,
  start: startMoto,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited', 'garbage'],
  page: 300,
  unicode: false,
  unknownZone: 'not_found',
  conflicts: false,
});
