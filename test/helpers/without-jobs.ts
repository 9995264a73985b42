import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../bin/lib/root.ts';

/** Environment of a console that runs every service but the one with the jobs, for tests that run a job by its own clock. */
export function withoutJobs(): { SERVICES: string } {
  const services = readdirSync(join(root, 'services'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'gen' && entry.name !== 'housekeeping')
    .map(({ name }) => name);
  return { SERVICES: [...services, '-housekeeping'].join(',') };
}
