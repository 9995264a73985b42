// The feed of purges: what nodes stored before a purge is not served after it.
import { PURGE_CAPABILITY, PURGE_FEED, PURGE_TOPIC, readPurges, readPurgeTargets } from '../../models/cache/purge.ts';
import { type FeedRows, namedFeed } from '../../pipeline/named-feed.ts';
import type { FeedPage, FeedTarget } from '../../runtime/feeds.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const PAGE = /^([0-9]{1,19})-([0-9]{1,19})$/;

function purges({ pools: { channel } }: Runtime): FeedRows {
  return {
    targets: (clusterIds) => readPurgeTargets(channel, clusterIds),
    changes: (clusterId, from, { position }) => readPurges(channel, clusterId, from, position),
    repair: async (clusterId, held, pageToken): Promise<FeedPage> => {
      // Before the purges: what is committed meanwhile comes with a later page, or with the next batch.
      const target = (await readPurgeTargets(channel, [clusterId])).get(clusterId) ?? { epoch: 0n, position: 0n };
      const isKnown = held !== null && held.epoch === target.epoch && held.position <= target.position;
      const begin = isKnown ? held.position : 0n;
      const page = pageToken === '' ? { epoch: target.epoch, position: begin } : pageOf(pageToken);
      // In another epoch the numbers of the pages before may be of other purges.
      const from = page.epoch === target.epoch ? page.position : begin;
      if (from >= target.position) return { place: target, reset: !isKnown, body: new Uint8Array(), nextPageToken: '' };
      const { to, body } = await readPurges(channel, clusterId, from, target.position);
      const nextPageToken = to < target.position ? `${target.epoch}-${to}` : '';
      return { place: target, reset: !isKnown, body, nextPageToken };
    },
  };
}

function pageOf(token: string): FeedTarget {
  const [, epoch, position] = PAGE.exec(token) ?? [];
  if (epoch === undefined || position === undefined) throw new RangeError('this is no page of the purges');
  return { epoch: BigInt(epoch), position: BigInt(position) };
}

const purgeFeed = namedFeed({
  name: PURGE_FEED,
  topic: PURGE_TOPIC,
  ownerLock: 0x53560107,
  hint: 'cache',
  changes: null,
  needs: PURGE_CAPABILITY,
  rows: purges,
});

export default purgeFeed;
