// The API of Huawei Cloud DNS, against a server that is written from its documentation.
import test from 'ava';
import { huaweicloudAdapter } from '../../services/dns/adapters/huaweicloud/huaweicloud.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { PAGE, startHuawei } from '../helpers/dns/huawei-server.ts';

adapterSuite(test, {
  kind: huaweicloudAdapter,
  start: startHuawei,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited', 'garbage'],
  page: PAGE,
  unicode: false,
  unknownZone: 'not_found',
  conflicts: true,
});
