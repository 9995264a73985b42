// Two processes of Debian's Alertmanager that know each other, and the alerts that are posted to both, as Prometheus does.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../lib/servers.ts';

export interface AlertmanagerPair {
  post(names: readonly string[]): Promise<void>;
  /** Ends one of the two at once and starts it again. */
  kill(which: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startAlertmanagers(webhook: string): Promise<AlertmanagerPair> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-alertmanager-'));
  const config = join(folder, 'config.yml');
  writeFileSync(
    config,
    `route: { receiver: sink, group_by: ['...'], group_wait: 1s, group_interval: 5s, repeat_interval: 24h }
receivers:
  - name: sink
    webhook_configs: [{ url: '${webhook}', send_resolved: false }]
`,
  );
  const ports = await Promise.all([0, 1].map(async () => ({ web: await freePort(), peer: await freePort() })));
  const start = (which: number): ChildProcess => {
    const { web, peer } = ports[which]!;
    return spawn(
      'prometheus-alertmanager',
      [
        `--config.file=${config}`,
        `--storage.path=${join(folder, String(which))}`,
        `--web.listen-address=127.0.0.1:${web}`,
        `--cluster.listen-address=127.0.0.1:${peer}`,
        `--cluster.peer=127.0.0.1:${ports[1 - which]!.peer}`,
        '--log.level=error',
      ],
      { stdio: 'ignore' },
    );
  };
  const children = [start(0), start(1)];
  const end = async (which: number) => {
    const child = children[which]!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
  return {
    post: async (names) => {
      const body = JSON.stringify(names.map((name) => ({ labels: { alertname: name } })));
      const headers = { 'content-type': 'application/json' };
      await Promise.all(
        ports.map(({ web }) =>
          fetch(`http://127.0.0.1:${web}/api/v2/alerts`, { method: 'POST', headers, body }).catch(() => undefined),
        ),
      );
    },
    kill: async (which) => {
      await end(which);
      children[which] = start(which);
    },
    stop: async () => {
      await Promise.all([end(0), end(1)]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
