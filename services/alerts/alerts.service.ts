import type { ServiceSchema } from 'moleculer';
import { alertSilences } from '../../contract/resources/alert-silences.ts';
import {
  alertChannels,
  alertEvents,
  alertPolicy,
  alertSmtp,
  alertSubscriptions,
  availableAlertChannels,
} from '../../contract/resources/alerts.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  createChannel,
  deleteChannel,
  listAvailableChannels,
  listChannels,
  testChannel,
  updateChannel,
} from './channels.ts';
import { listEvents } from './list-events.ts';
import { getPolicy, setPolicy } from './policy.ts';
import { createSilence, endSilence, listSilences } from './silences.ts';
import { getSmtp, setSmtp } from './smtp.ts';
import { changeSubscription, createSubscription, endSubscription, listSubscriptions } from './subscriptions.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'alerts',
  mixins: [
    contractService([
      implement(alertChannels.list, (input) => listChannels(runtime, input)),
      implement(alertChannels.create, (input, call) => createChannel(runtime, input, call)),
      implement(alertChannels.update, (input, call) => updateChannel(runtime, input, call)),
      implement(alertChannels.delete, (input, call) => deleteChannel(runtime, input, call)),
      implement(alertChannels.test, (input, call) => testChannel(runtime, input, call)),
      implement(availableAlertChannels.list, (input) => listAvailableChannels(runtime, input)),
      implement(alertPolicy.get, () => getPolicy(runtime)),
      implement(alertPolicy.set, (input, call) => setPolicy(runtime, input, call)),
      implement(alertSmtp.get, () => getSmtp(runtime)),
      implement(alertSmtp.set, (input, call) => setSmtp(runtime, input, call)),
      implement(alertSubscriptions.list, (input) => listSubscriptions(runtime, input)),
      implement(alertSubscriptions.create, (input, call) => createSubscription(runtime, input, call)),
      implement(alertSubscriptions.update, (input, call) => changeSubscription(runtime, input, call)),
      implement(alertSubscriptions.delete, (input, call) => endSubscription(runtime, input, call)),
      implement(alertSilences.list, (input) => listSilences(runtime, input)),
      implement(alertSilences.create, (input, call) => createSilence(runtime, input, call)),
      implement(alertSilences.delete, (input, call) => endSilence(runtime, input, call)),
      implement(alertEvents.list, (input) => listEvents(runtime, input)),
    ]),
  ],
});
