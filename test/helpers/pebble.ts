// Pebble on free ports of this machine, with a folder that goes when it stops.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../bench/lib/servers.ts';
import { type Pebble, type PebbleOptions, startPebble } from '../../bin/lib/pebble.ts';
import { Processes } from '../../bin/lib/processes.ts';

export { type Authority, startAuthority } from '../../bin/lib/pebble.ts';
export type { Pebble };

/** `httpPort` is the edge's, where it asks for answers. */
export async function startTestPebble(options: Omit<PebbleOptions, 'processes' | 'folder' | 'ports'>): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-pebble-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const ports = {
    acme: await freePort(),
    management: await freePort(),
    dns: await freePort(),
    dnsManagement: await freePort(),
  };
  const processes = new Processes(join(folder, 'processes.json'));
  try {
    const pebble = await startPebble({ ...options, processes, folder, ports });
    return {
      ...pebble,
      stop: async () => {
        await pebble.stop();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}
