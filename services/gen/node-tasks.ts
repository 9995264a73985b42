// Written by `npm run generate` from the files it imports. Changes here are lost.
import { originTestTask } from '../sites/origin-test.task.ts';

export const NODE_TASKS = [
  originTestTask,
] as const;
