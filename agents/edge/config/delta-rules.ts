// What to do with a pushed change, decided from positions alone. The rules make any message harmless when it comes twice,
// late or out of order.
//
//   same history?   base <= mine < revision   revision <= mine   otherwise
//   yes             apply                     ignore             pull
//   no              pull                      pull               pull
import type { BanBatch, BanPosition } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { ConfigDelta, ConfigPosition } from '../../../proto/gen/svc/node/v1/config_pb.js';

export type Verdict = 'apply' | 'ignore' | 'pull';

export function judgeDelta(
  mine: Pick<ConfigPosition, 'epoch' | 'track' | 'revision'>,
  delta: Pick<ConfigDelta, 'epoch' | 'track' | 'base' | 'revision' | 'truncated'>,
): Verdict {
  if (delta.epoch !== mine.epoch || delta.track !== mine.track) return 'pull';
  if (delta.revision <= mine.revision) return 'ignore';
  return delta.base <= mine.revision && !delta.truncated ? 'apply' : 'pull';
}

export function judgeBatch(
  mine: Pick<BanPosition, 'epoch' | 'sequence'>,
  batch: Pick<BanBatch, 'epoch' | 'from' | 'to' | 'truncated'>,
): Verdict {
  if (batch.epoch !== mine.epoch) return 'pull';
  if (batch.to <= mine.sequence) return 'ignore';
  return batch.from <= mine.sequence && !batch.truncated ? 'apply' : 'pull';
}
