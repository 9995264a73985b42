// Webhooks to a receiver that is written from their documentation.
import test from 'ava';
import { webhookAdapter } from '../../services/dns/adapters/webhook/webhook.adapter.ts';
import { adapterSuite } from '../helpers/dns/adapter-suite.ts';
import { startReceiver } from '../helpers/dns/webhook-receiver.ts';

adapterSuite(test, {
  kind: webhookAdapter,
  start: startReceiver,
  faults: ['lost', 'unanswered', 'reset', 'gateway', 'limited'],
  page: null,
  unicode: true,
  unknownZone: 'not_found',
  conflicts: true,
});
