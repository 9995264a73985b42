// The usage export as a long job: the same file, made by the console and kept for a day.
import type { LongJobKind } from '../../mixins/long-job.ts';
import { readCursor } from './cursor.ts';
import { exportUsage } from './export.ts';
import { summedRange } from './range.ts';

export interface UsageExportInput {
  from: string;
  to: string;
  siteId?: string;
}

export const usageExportJob: LongJobKind<UsageExportInput> = {
  name: 'usage_export',
  piece: (runtime, input, after) => exportUsage(runtime, input, after),
  progress: (input, next) => {
    const { from, to } = summedRange(input);
    const place = readCursor(next);
    return place ? (100 * (place.windowStart - from)) / (to - from) : 0;
  },
};
