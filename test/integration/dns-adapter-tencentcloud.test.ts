// The API of Tencent Cloud, against a server that is written from its documentation.
import test from 'ava';
import { tencentcloudAdapter } from '../../services/dns/adapters/tencentcloud/tencentcloud.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { PAGE, startTencent } from '../helpers/dns/tencent-server.ts';

adapterSuite(test, {
  kind: tencentcloudAdapter,
  start: startTencent,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited', 'garbage'],
  page: PAGE,
  unicode: true,
  unknownZone: 'not_found',
  conflicts: true,
});
