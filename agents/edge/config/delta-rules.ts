// What to do with a pushed change, decided from positions alone. The rules make any message harmless when it comes twice,
// late or out of order.
//
//   same history?   base <= mine < revision   revision <= mine   otherwise
//   yes             apply                     ignore             pull
//   no              pull                      pull               pull
//
// A change from one track to another is of the same history for whoever is at its base exactly.
import type { BanBatch, BanPosition } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import { type ConfigDelta, type ConfigPosition, Track } from '../../../proto/gen/svc/node/v1/config_pb.js';

export type Verdict = 'apply' | 'ignore' | 'pull';

export function judgeDelta(
  mine: Pick<ConfigPosition, 'epoch' | 'track' | 'revision'>,
  delta: Pick<ConfigDelta, 'epoch' | 'track' | 'base' | 'baseTrack' | 'revision' | 'truncated'>,
): Verdict {
  if (delta.epoch !== mine.epoch) return 'pull';
  if (delta.track !== mine.track) {
    const follows = delta.baseTrack === mine.track && delta.base === mine.revision && !delta.truncated;
    return follows && delta.revision >= mine.revision ? 'apply' : 'pull';
  }
  // From another track, and to where this one is already.
  if (isFromAnother(delta) && delta.revision > mine.revision) return 'pull';
  if (delta.revision <= mine.revision) return 'ignore';
  return delta.base <= mine.revision && !delta.truncated ? 'apply' : 'pull';
}

function isFromAnother({ track, baseTrack }: Pick<ConfigDelta, 'track' | 'baseTrack'>): boolean {
  return baseTrack !== Track.UNSPECIFIED && baseTrack !== track;
}

export function judgeBatch(
  mine: Pick<BanPosition, 'epoch' | 'sequence'>,
  batch: Pick<BanBatch, 'epoch' | 'from' | 'to'> & { truncated?: boolean },
): Verdict {
  if (batch.epoch !== mine.epoch) return 'pull';
  if (batch.to <= mine.sequence) return 'ignore';
  return batch.from <= mine.sequence && !batch.truncated ? 'apply' : 'pull';
}
