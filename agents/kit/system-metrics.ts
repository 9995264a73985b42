// Metrics of the machine as heartbeats carry them, read from /proc. Rates need two readings: the first are 0.

import { readFileSync } from 'node:fs';
import { create } from '@bufbuild/protobuf';
import { type Metrics, MetricsSchema } from '../../proto/gen/svc/node/v1/node_pb.js';

interface CpuTimes {
  busy: number;
  total: number;
}

/** Busy and total jiffies from the first line of /proc/stat; guest time is already inside user time. */
export function parseCpuTimes(stat: string): CpuTimes {
  const fields = (stat.split('\n', 1)[0] ?? '').trim().split(/\s+/).slice(1, 9).map(Number);
  const total = fields.reduce((sum, value) => sum + value, 0);
  return { total, busy: total - (fields[3] ?? 0) - (fields[4] ?? 0) };
}

/** Bytes used and in total from /proc/meminfo. */
export function parseMemory(meminfo: string): { used: number; total: number } {
  const kib = (name: string): number | undefined => {
    const match = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(meminfo);
    return match ? Number(match[1]) : undefined;
  };
  const total = kib('MemTotal') ?? 0;
  const free = kib('MemAvailable') ?? (kib('MemFree') ?? 0) + (kib('Buffers') ?? 0) + (kib('Cached') ?? 0);
  return { used: Math.max(0, total - free) * 1024, total: total * 1024 };
}

/** Bytes sent so far by all interfaces but loopback, from /proc/net/dev. */
export function parseSentBytes(dev: string): number {
  let sent = 0;
  for (const line of dev.split('\n')) {
    const match = /^\s*([^:\s]+):\s*(.*)$/.exec(line);
    if (!match || match[1] === 'lo') continue;
    sent += Number(match[2]!.trim().split(/\s+/)[8] ?? 0) || 0;
  }
  return sent;
}

/** Reads the machine's state each time it is asked; asked twice within a second it repeats the rates. */
export class SystemMetrics {
  private at = 0;
  private cpu: CpuTimes | undefined;
  private sent: number | undefined;
  private cpuPercent = 0;
  private egressBps = 0;

  read(activeConnections: bigint, nowMs = performance.now()): Metrics {
    const [load1 = 0, load5 = 0, load15 = 0] = readFileSync('/proc/loadavg', 'utf8').split(' ').map(Number);
    const memory = parseMemory(readFileSync('/proc/meminfo', 'utf8'));
    const elapsedMs = nowMs - this.at;
    if (this.cpu === undefined || elapsedMs >= 1000) {
      const cpu = parseCpuTimes(readFileSync('/proc/stat', 'utf8'));
      const sent = parseSentBytes(readFileSync('/proc/net/dev', 'utf8'));
      if (this.cpu !== undefined && this.sent !== undefined) {
        const total = cpu.total - this.cpu.total;
        this.cpuPercent = total > 0 ? Math.min(100, Math.max(0, (100 * (cpu.busy - this.cpu.busy)) / total)) : 0;
        this.egressBps = sent >= this.sent ? Math.round(((sent - this.sent) * 8000) / elapsedMs) : 0;
      }
      this.cpu = cpu;
      this.sent = sent;
      this.at = nowMs;
    }
    return create(MetricsSchema, {
      cpuPercent: this.cpuPercent,
      load1,
      load5,
      load15,
      memoryUsedBytes: BigInt(memory.used),
      memoryTotalBytes: BigInt(memory.total),
      egressBps: BigInt(this.egressBps),
      activeConnections,
    });
  }
}
