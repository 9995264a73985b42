// For services whose jobs one process of all does.
import type { ServiceSchema } from 'moleculer';
import { Leader, type LeaderJob } from '../runtime/leader.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { runs } from './runs.ts';

/** Does the jobs while the service runs and this process holds their locks. */
export function leaderJobs(runtime: Runtime, jobs: readonly LeaderJob[]): Partial<ServiceSchema> {
  return runs(() => new Leader(runtime, jobs));
}
