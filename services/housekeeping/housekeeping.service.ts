// Jobs that end things by age, and finish platform-wide publications; one process of all runs each.
import type { ServiceSchema } from 'moleculer';
import type { Role } from '../../runtime/env.ts';
import { Leader } from '../../runtime/leader.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { JOBS } from './jobs.ts';

export const roles: readonly Role[] = ['worker'];

export default (runtime: Runtime): ServiceSchema => {
  let leader: Leader | null = null;
  return {
    name: 'housekeeping',
    async started() {
      leader = new Leader(runtime, JOBS);
      await leader.start();
    },
    async stopped() {
      await leader?.stop();
    },
  };
};
