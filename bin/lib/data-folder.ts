// The folder a launcher keeps everything in. A marker file says that it is ours, so that nothing else is ever deleted.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isLocked, type Lock, takeLock } from './lock.ts';
import { Ports } from './ports.ts';
import { Processes } from './processes.ts';
import { Refusal, say } from './progress.ts';
import { loadSecrets, type Secrets } from './secrets.ts';
import { removeOutsideData } from './unprivileged.ts';

const MARKER = '.edge-delivery-console';

export interface DataFolder {
  readonly path: string;
  readonly lock: Lock;
  readonly processes: Processes;
  readonly ports: Ports;
  readonly secrets: Secrets;
  file(...parts: string[]): string;
  log(name: string): string;
}

/** Throws a Refusal when the folder exists, is not empty and was not made by `openDataFolder`. */
function checkOurs(path: string): void {
  if (!existsSync(path)) return;
  if (!statSync(path).isDirectory()) throw new Refusal(`${path} is not a folder`);
  if (readdirSync(path).length > 0 && !existsSync(join(path, MARKER))) {
    throw new Refusal(`${path} contains other files (it has no ${MARKER} file). Choose another folder with --data.`);
  }
}

/**
 * Deletes a data folder of ours. Throws a Refusal when it has no marker or a running launcher uses it. What a killed
 * launcher left running there is stopped first.
 */
export async function removeDataFolder(path: string): Promise<void> {
  checkOurs(path);
  if (!existsSync(path)) return;
  if (isLocked(join(path, 'launcher.lock'))) {
    // Waits for one that is stopping, and names one that is not.
    (await takeLock(join(path, 'launcher.lock'), path)).release();
  }
  await new Processes(join(path, 'processes.json')).stopLeftovers();
  removeOutsideData(path);
  rmSync(path, { recursive: true, force: true, maxRetries: 3 });
}

/** Opens (and the first time creates) a data folder, takes its lock and stops what a killed launcher left running. */
export async function openDataFolder(path: string): Promise<DataFolder> {
  checkOurs(path);
  // Others may pass through: PostgreSQL runs as another account when the launcher is root.
  mkdirSync(join(path, 'logs'), { recursive: true, mode: 0o711 });
  writeFileSync(
    join(path, MARKER),
    'Created by a launcher of the Edge Delivery Console, which may delete this folder.\n',
  );
  const lock = await takeLock(join(path, 'launcher.lock'), path);
  const processes = new Processes(join(path, 'processes.json'));
  const left = await processes.stopLeftovers();
  if (left.length > 0) say(`  stopped processes of an earlier start: ${left.join(', ')}`);
  return {
    path,
    lock,
    processes,
    ports: new Ports(join(path, 'ports.json')),
    secrets: loadSecrets(join(path, 'secrets.json')),
    file: (...parts) => join(path, ...parts),
    log: (name) => join(path, 'logs', `${name}.log`),
  };
}
