// Metrics of the machine as heartbeats carry them, read from /proc; where a control group allows less than the machine has,
// what it allows is the machine. Rates need two readings: the first are 0. What cannot be read is 0, never an error.

import { closeSync, openSync, readSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { type Metrics, MetricsSchema } from '../../proto/gen/svc/node/v1/node_pb.js';

/** Lists of a thousand interfaces fit. */
const MAX_BYTES = 256 * 1024;

interface CpuTimes {
  busy: number;
  total: number;
}

/** Busy and total jiffies from the first line of /proc/stat; guest time is already inside user time. */
export function parseCpuTimes(stat: string): CpuTimes {
  const fields = (stat.split('\n', 1)[0] ?? '').trim().split(/\s+/).slice(1, 9).map(Number);
  const total = fields.reduce((sum, value) => sum + (value || 0), 0);
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

/** Processors and bytes of memory that a control group (version 2) allows; undefined where it sets no limit. */
export function parseGroupLimits(cpuMax: string, memoryMax: string): { processors?: number; memory?: number } {
  const [quota, period] = cpuMax.trim().split(/\s+/).map(Number);
  const memory = Number(memoryMax.trim() || Number.NaN);
  return {
    ...(quota! > 0 && period! > 0 ? { processors: quota! / period! } : {}),
    ...(memory > 0 ? { memory } : {}),
  };
}

/** The number after `name` in lines of `name number`; undefined when there is none. */
export function parseField(lines: string, name: string): number | undefined {
  const match = new RegExp(`^${name} (\\d+)$`, 'm').exec(lines);
  return match ? Number(match[1]) : undefined;
}

/** The beginning of a file; "" when it cannot be read. */
function read(path: string): string {
  let fd: number | undefined;
  try {
    fd = openSync(path, 'r');
    const buffer = Buffer.allocUnsafe(MAX_BYTES);
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, MAX_BYTES, 0));
  } catch {
    return '';
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Folder of this process's control group. */
function groupFolder(proc: string, groups: string): string {
  const path = /^0::(\/.*)$/m.exec(read(join(proc, 'self/cgroup')))?.[1] ?? '/';
  return path.includes('..') ? groups : join(groups, path);
}

/** Reads the machine's state each time it is asked; asked twice within a second it repeats the rates. */
export class SystemMetrics {
  private readonly proc: string;
  private readonly group: string;
  private at = 0;
  private cpu: CpuTimes | undefined;
  /** Microseconds of processor time of the control group. */
  private used: number | undefined;
  private sent: number | undefined;
  private cpuPercent = 0;
  private egressBps = 0;

  constructor(proc = '/proc', groups = '/sys/fs/cgroup') {
    this.proc = proc;
    this.group = groupFolder(proc, groups);
  }

  /** Never throws. */
  read(activeConnections: bigint, nowMs = performance.now()): Metrics {
    const [load1, load5, load15] = read(join(this.proc, 'loadavg')).split(' ').map(Number);
    const limits = parseGroupLimits(read(join(this.group, 'cpu.max')), read(join(this.group, 'memory.max')));
    if (this.cpu === undefined || nowMs - this.at >= 1000) this.readRates(nowMs, limits.processors);
    const memory = this.readMemory(limits.memory);
    return create(MetricsSchema, {
      cpuPercent: this.cpuPercent,
      load1: load1 || 0,
      load5: load5 || 0,
      load15: load15 || 0,
      memoryUsedBytes: BigInt(memory.used),
      memoryTotalBytes: BigInt(memory.total),
      egressBps: BigInt(this.egressBps),
      activeConnections,
    });
  }

  private readRates(nowMs: number, allowed: number | undefined): void {
    const elapsedMs = nowMs - this.at;
    const cpu = parseCpuTimes(read(join(this.proc, 'stat')));
    const used = parseField(read(join(this.group, 'cpu.stat')), 'usage_usec');
    const sent = parseSentBytes(read(join(this.proc, 'net/dev')));
    if (this.cpu !== undefined && this.sent !== undefined) {
      const total = cpu.total - this.cpu.total;
      const ofMachine = total > 0 ? (cpu.busy - this.cpu.busy) / total : 0;
      const limited = allowed !== undefined && allowed < (cpus().length || availableParallelism());
      const ofGroup =
        limited && used !== undefined && this.used !== undefined
          ? (used - this.used) / (elapsedMs * 1000 * allowed)
          : undefined;
      this.cpuPercent = Math.min(100, Math.max(0, 100 * (ofGroup ?? ofMachine)));
      this.egressBps = sent >= this.sent ? Math.round(((sent - this.sent) * 8000) / elapsedMs) : 0;
    }
    this.cpu = cpu;
    this.used = used;
    this.sent = sent;
    this.at = nowMs;
  }

  private readMemory(limit: number | undefined): { used: number; total: number } {
    const memory = parseMemory(read(join(this.proc, 'meminfo')));
    const current = Number(read(join(this.group, 'memory.current')).trim());
    if (limit === undefined || limit >= memory.total || !(current > 0)) return memory;
    // Files that were read and can be let go at any time are no use of memory.
    const files = parseField(read(join(this.group, 'memory.stat')), 'inactive_file') ?? 0;
    return { used: Math.max(0, current - files), total: Math.floor(limit) };
  }
}
