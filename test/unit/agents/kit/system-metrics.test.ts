import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { SystemMetrics } from '../../../../agents/kit/system-metrics.ts';
import { temporaryFolder } from '../helpers/folder.ts';

/** A machine of files: 1 GB of memory, a quarter of it in use. */
function machine(t: ExecutionContext, files: Record<string, string> = {}) {
  const folder = temporaryFolder(t);
  const write = (name: string, text: string): void => {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  const usual = {
    'proc/loadavg': '0.50 0.25 0.10 1/200 4242\n',
    'proc/meminfo': 'MemTotal:       1000000 kB\nMemAvailable:    750000 kB\n',
    'proc/stat': 'cpu  100 0 100 800 0 0 0 0 0 0\n',
    'proc/net/dev': 'Inter-|\n  lo: 1 0 0 0 0 0 0 0 99999 0\n  eth0: 1 0 0 0 0 0 0 0 1000 0\n',
  };
  for (const [name, text] of Object.entries({ ...usual, ...files })) write(name, text);
  return { write, metrics: new SystemMetrics(join(folder, 'proc'), join(folder, 'cgroup')) };
}

test('load, memory, processor and egress are those of the machine', (t) => {
  const { write, metrics } = machine(t);
  const first = metrics.read(7n, 10_000);
  t.like(first, { cpuPercent: 0, load1: 0.5, load5: 0.25, load15: 0.1, egressBps: 0n, activeConnections: 7n });
  t.is(first.memoryUsedBytes, 250_000n * 1024n);
  t.is(first.memoryTotalBytes, 1_000_000n * 1024n);
  write('proc/stat', 'cpu  150 0 150 900 0 0 0 0 0 0\n');
  write('proc/net/dev', '  lo: 1 0 0 0 0 0 0 0 999999 0\n  eth0: 1 0 0 0 0 0 0 0 11000 0\n');
  const second = metrics.read(7n, 20_000);
  t.is(second.cpuPercent, 50);
  t.is(second.egressBps, 8000n);
});

test('a control group that allows less than the machine has is the machine', (t) => {
  const half = `${50_000 * cpus().length} 100000\n`;
  const { write, metrics } = machine(t, {
    'proc/self/cgroup': '0::/edge.slice\n',
    'cgroup/edge.slice/cpu.max': half,
    'cgroup/edge.slice/cpu.stat': 'usage_usec 1000000\nuser_usec 1\n',
    'cgroup/edge.slice/memory.max': '104857600\n',
    'cgroup/edge.slice/memory.current': '62914560\n',
    'cgroup/edge.slice/memory.stat': 'anon 5\ninactive_file 10485760\n',
  });
  const first = metrics.read(0n, 10_000);
  t.is(first.memoryTotalBytes, 104_857_600n);
  t.is(first.memoryUsedBytes, 52_428_800n);
  write('cgroup/edge.slice/cpu.stat', `usage_usec ${1_000_000 + 2_500_000 * cpus().length}\n`);
  t.is(metrics.read(0n, 20_000).cpuPercent, 50);
});

test('a limit above what the machine has changes nothing', (t) => {
  const { metrics } = machine(t, {
    'cgroup/cpu.max': 'max 100000\n',
    'cgroup/memory.max': '99999999999999\n',
    'cgroup/memory.current': '5\n',
  });
  t.is(metrics.read(0n).memoryTotalBytes, 1_000_000n * 1024n);
});

test('what cannot be read is 0, never an error', (t) => {
  const nowhere = new SystemMetrics('/nowhere', '/nowhere');
  const none = { cpuPercent: 0, load1: 0, memoryUsedBytes: 0n, memoryTotalBytes: 0n, egressBps: 0n };
  t.like(nowhere.read(1n, 10_000), none);
  t.like(nowhere.read(1n, 20_000), none);
  const files = ['loadavg', 'meminfo', 'stat', 'net/dev', 'self/cgroup'].map((name) => [
    `proc/${name}`,
    'x y\0z\n: \n',
  ]);
  const { metrics } = machine(t, Object.fromEntries(files));
  t.like(metrics.read(1n, 10_000), none);
  t.like(metrics.read(1n, 20_000), none);
});
