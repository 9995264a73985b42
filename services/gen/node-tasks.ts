// Written by `npm run generate` from the files it imports. Changes here are lost.
import { prefetchTask } from '../cache-tasks/prefetch.task.ts';
import { originTestTask } from '../sites/origin-test.task.ts';

export const NODE_TASKS = [
  prefetchTask,
  originTestTask,
] as const;
