// Written by `npm run generate` from the files it imports. Changes here are lost.
import { originTestTask } from '../origin-test/origin-test.task.ts';
import { prefetchTask } from '../prefetch/prefetch.task.ts';

export const TASK_KINDS = [
  originTestTask,
  prefetchTask,
] as const;
