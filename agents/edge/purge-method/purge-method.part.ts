import { SharedKeys } from '../keys/shared-keys.ts';
import type { Part, PartKind } from '../lib/part.ts';
import { servePurgeRequests } from './purge-desk.ts';
import { PURGE_SECRET } from './purge-secret.ts';

/** PURGE requests of clients. */
export const purgeMethodPart: PartKind = {
  name: 'PURGE',
  make: ({ options, log, channel, reached, stopping }, { client }): Part => {
    const secret = new SharedKeys(PURGE_SECRET, {
      path: options.paths.purgeSecret,
      clusterId: options.identity.clusterId,
      client,
      log,
      channel,
      pushed: () => undefined,
    });
    let serving: Promise<void> | undefined;
    return {
      start: () => {
        serving = servePurgeRequests({ client, channel: reached, log, stopping });
      },
      status: (report) => report.problem('feature', secret.message),
      event: (event) => {
        if (event.case === 'dataPlaneStatus') secret.onStatus(event.value);
        else if (event.case === 'connected') secret.onConnected();
      },
      stop: async () => {
        await Promise.all([secret.stop(), serving]);
      },
    };
  },
};
