// The API of Alibaba Cloud DNS, against a server that is written from its documentation.
import test from 'ava';
import { alidnsAdapter } from '../../services/dns/adapters/alidns/alidns.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { PAGE, startAlidns } from '../helpers/dns/alidns-server.ts';

adapterSuite(test, {
  kind: alidnsAdapter,
  start: startAlidns,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited', 'garbage'],
  page: PAGE,
  unicode: true,
  unknownZone: 'not_found',
  conflicts: true,
});
