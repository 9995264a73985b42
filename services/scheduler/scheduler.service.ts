// Names of clusters follow their healthy nodes.
import type { ServiceSchema } from 'moleculer';
import { runs } from '../../mixins/runs.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { DnsEngine } from './engine.ts';

export const roles: readonly Role[] = ['worker'];
export const pools = { api: 6 };

export default (runtime: Runtime): ServiceSchema => ({
  name: 'scheduler',
  mixins: [runs(() => new DnsEngine(runtime))],
});
