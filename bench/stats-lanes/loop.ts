// Preloaded into a console: tells how late its event loop is, and how busy. The parent asks over the channel between parent
// and child, and each response begins anew.
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

export interface Loop {
  delayP50Ms: number;
  delayP99Ms: number;
  /** Share of the time in which it ran. */
  busy: number;
}

const RESOLUTION_MS = 2;

if (isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  let last = performance.eventLoopUtilization();
  process.on('message', () => {
    const busy = performance.eventLoopUtilization(last).utilization;
    const told: Loop = { delayP50Ms: delay.percentile(50) / 1e6, delayP99Ms: delay.percentile(99) / 1e6, busy };
    delay.reset();
    last = performance.eventLoopUtilization();
    process.send?.(told);
  });
  // The channel alone keeps no console running.
  process.channel?.unref();
}
