// A server that receives messages about alerts, which benchmarks have, too.
export { type Hooks, type Received, startHooks } from '../../bench/lib/hooks.ts';
