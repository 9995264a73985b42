import type { Part, PartKind } from '../lib/part.ts';
import { SESSION_TICKET_KEYS } from './session-ticket-keys.ts';
import { SharedKeys } from './shared-keys.ts';

/** Keys of TLS session tickets. */
export const sessionTicketKeysPart: PartKind = {
  name: 'session ticket keys',
  make: ({ options, log, channel, reportSoon }, { client }): Part => {
    const keys = new SharedKeys(SESSION_TICKET_KEYS, {
      path: options.paths.sessionTicketKeys,
      clusterId: options.identity.clusterId,
      client,
      log,
      channel,
      pushed: reportSoon,
    });
    return {
      status: (report) => {
        report.heartbeat.sessionTicketKeysVersion = keys.version;
        report.problem('feature', keys.message);
      },
      event: (event) => {
        if (event.case === 'keysChanged') keys.onVersion(event.value.sessionTicketVersion);
        else if (event.case === 'heartbeat') keys.onVersion(event.value.sessionTicketKeysVersion);
        else if (event.case === 'dataPlaneStatus') keys.onStatus(event.value);
        else if (event.case === 'connected') keys.onConnected();
      },
      stop: () => keys.stop(),
    };
  },
};
