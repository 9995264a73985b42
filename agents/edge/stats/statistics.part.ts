import { removeFile } from '../../kit/files.ts';
import type { Part, PartKind } from '../lib/part.ts';
import { clockPart } from '../run/clock.part.ts';
import { Statistics } from './statistics.ts';

/** Usage of this node on its way to the console. */
export const statisticsPart: PartKind = {
  name: 'statistics',
  make: (node, { client }): Part => {
    const { paths, identity } = node.options;
    removeFile(paths.oldStatsLedger);
    const statistics = new Statistics({
      folder: paths.statsFolder,
      nodeId: identity.nodeId,
      client,
      clock: node.of(clockPart).clock,
      log: node.log,
      channel: node.reached,
      openBacklog: node.openChannel,
    });
    return {
      start: () => statistics.start(),
      event: (event) => {
        if (event.case === 'connected') statistics.onConnected();
      },
      stop: () => statistics.stop(),
    };
  },
};
