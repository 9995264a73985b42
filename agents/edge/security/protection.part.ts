import { bansPart } from '../bans/bans.part.ts';
import type { Part, PartKind } from '../lib/part.ts';
import { clockPart } from '../run/clock.part.ts';
import { Protection } from './protection.ts';

/** Challenge keys, own bans, events and levels. */
interface ProtectionPart extends Part {
  readonly protection: Protection;
}

export const protectionPart: PartKind<ProtectionPart> = {
  name: 'protection',
  make: (node, dataPlane) => {
    const { options, log, tell } = node;
    const bans = node.of(bansPart);
    const protection = new Protection({
      paths: options.paths,
      nodeId: options.identity.nodeId,
      clusterId: options.identity.clusterId,
      capacity: options.banCapacity,
      client: dataPlane.client,
      log,
      channel: node.channel,
      isConnected: () => node.reached() !== undefined,
      serverClock: node.of(clockPart).clock,
      globalChanged: (globalCidrs) => tell({ case: 'ownBansChanged', globalCidrs }),
      liftAgain: (lifts) => bans.liftOwn(lifts),
      check: () => dataPlane.check(),
      changed: node.reportSoon,
      shown: node.showSoon,
    });
    return {
      protection,
      status: (report) => {
        report.heartbeat.challengeKeysVersion = protection.keysVersion;
        report.shown.protection = protection.view;
        report.problem('feature', protection.message);
      },
      event: (event) => {
        if (event.case === 'bansChanged') protection.onLifts(event.liftedOwn);
        else if (event.case === 'keysChanged') protection.onKeysVersion(event.value.version);
        else if (event.case === 'heartbeat') protection.onKeysVersion(event.value.challengeKeysVersion);
        else if (event.case === 'dataPlaneStatus') protection.onStatus(event.value);
        else if (event.case === 'connected') protection.onConnected();
      },
      maintain: () => protection.maintain(),
      stop: () => protection.stop(),
      close: () => protection.close(),
    };
  },
};
