// The API of DNSPod, against a server that is written from its documentation.
import test from 'ava';
import { dnspodAdapter } from '../../services/dns/adapters/dnspod/dnspod.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { PAGE, startDnspod } from '../helpers/dns/dnspod-server.ts';

adapterSuite(test, {
  kind: dnspodAdapter,
  start: startDnspod,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited', 'garbage'],
  page: PAGE,
  unicode: true,
  unknownZone: 'not_found',
  conflicts: true,
});
