import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../../bin/lib/root.ts';

/** Environment of a console that runs every service but the one with the jobs, for tests that run a job by its own clock. */
export function withoutJobs(): { SERVICES: string } {
  const services = globSync('*/*.service.ts', { cwd: join(root, 'services') })
    .map((file) => dirname(file))
    .filter((name) => name !== 'housekeeping');
  return { SERVICES: [...services, '-housekeeping'].join(',') };
}
