// Cloudflare's API, against a server that is written from its documentation.
import test from 'ava';
import { cloudflareAdapter } from '../../services/dns/adapters/cloudflare/cloudflare.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { PAGE, startCloudflare } from '../helpers/dns/cloudflare-server.ts';

adapterSuite(test, {
  kind: cloudflareAdapter,
  start: startCloudflare,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited', 'garbage'],
  page: PAGE,
  unicode: true,
  unknownZone: 'not_found',
  conflicts: true,
});
