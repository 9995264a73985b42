// Finds what service folders bring along: every services/<name>/<name>.service.ts says itself which roles load it, and
// every services/<name>/<name>.feed.ts registers a feed.
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServiceSchema } from 'moleculer';
import { type ConsoleEnv, EnvError, type Role } from '../runtime/env.ts';
import type { Feed } from '../runtime/feeds.ts';
import type { Runtime } from '../runtime/runtime.ts';

interface ServiceModule {
  default: (runtime: Runtime) => ServiceSchema;
  roles: readonly Role[];
}

/** Former names of services, which SERVICES may still have for one release. */
const FORMER_NAMES: ReadonlyMap<string, string> = new Map([['site-waf', 'waf']]);

export interface FoundService {
  name: string;
  create(runtime: Runtime): ServiceSchema;
}

/** Names in SERVICES that the next release refuses, each with the name to use instead. */
export function formerNames(services: readonly string[] | null): { former: string; name: string }[] {
  return (services ?? []).flatMap((former) => {
    const name = FORMER_NAMES.get(former);
    return name === undefined ? [] : [{ former, name }];
  });
}

/** The services that this environment asks for, by name; throws {@link EnvError} for names in SERVICES that are none. */
export async function discoverServices(env: Pick<ConsoleEnv, 'role' | 'services'>): Promise<FoundService[]> {
  const names = await foldersWith('service');
  const asked = env.services && [...new Set(env.services.map((name) => FORMER_NAMES.get(name) ?? name))];
  const unknown = asked?.filter((name) => !names.includes(name)) ?? [];
  if (unknown.length > 0) {
    const problem = `names services that do not exist: ${unknown.join(', ')} (existing: ${names.join(', ')})`;
    throw new EnvError([{ name: 'SERVICES', problem }]);
  }
  const found: FoundService[] = [];
  for (const name of asked ?? names) {
    const module = (await import(`./${name}/${name}.service.ts`)) as ServiceModule;
    const wanted = asked !== null || env.role === 'all' || module.roles.includes(env.role);
    if (wanted) found.push({ name, create: module.default });
  }
  return found;
}

/** The feeds of all folders, whatever the role: relays and the node channel carry what others emit. */
export async function discoverFeeds(): Promise<Feed[]> {
  const feeds: Feed[] = [];
  for (const name of await foldersWith('feed')) {
    const module = (await import(`./${name}/${name}.feed.ts`)) as { default: Feed };
    feeds.push(module.default);
  }
  return feeds;
}

/** Names of the folders that have a file `<name>.<kind>.ts`. */
async function foldersWith(kind: 'service' | 'feed'): Promise<string[]> {
  const folders = await readdir(import.meta.dirname, { withFileTypes: true });
  const names: string[] = [];
  for (const folder of folders.filter((entry) => entry.isDirectory())) {
    const exists = await access(join(import.meta.dirname, folder.name, `${folder.name}.${kind}.ts`)).then(
      () => true,
      () => false,
    );
    if (exists) names.push(folder.name);
  }
  return names.sort();
}
