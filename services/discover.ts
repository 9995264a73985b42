// Finds what service folders bring along: every services/<name>/<name>.service.ts says itself which roles load it and what
// belongs to it, and every services/<name>/<name>.feed.ts registers a feed. A process imports the services that it runs.
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServiceSchema } from 'moleculer';
import { leaderJobs } from '../mixins/leader-jobs.ts';
import type { ServiceFeature } from '../mixins/service-feature.ts';
import { type ConsoleEnv, EnvError, type Role } from '../runtime/env.ts';
import type { Feed } from '../runtime/feeds.ts';
import type { LeaderJob } from '../runtime/leader.ts';
import { FOR_REQUESTS, type PoolSizes } from '../runtime/pool-sizes.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { ROLES_OF_SERVICES } from './gen/roles.ts';

interface ServiceModule {
  default: (runtime: Runtime) => ServiceSchema;
  /** Services that SERVICES brings along with this one. */
  belongings?: readonly string[];
  /** Connections to the database that it needs; unless it says so, what requests need. */
  pools?: Partial<PoolSizes>;
}

/** Former names of services, which SERVICES may still have for one release. */
const FORMER_NAMES: ReadonlyMap<string, string> = new Map([['site-waf', 'waf']]);
/** Has the jobs of all services. */
const ALL_JOBS = 'housekeeping';
/** What a process needs for jobs of its own services. */
const FOR_JOBS: Partial<PoolSizes> = { jobs: 2, bans: 2, channel: 2 };

export interface FoundService {
  name: string;
  pools: Partial<PoolSizes>;
  create(runtime: Runtime): ServiceSchema;
}

export interface Found {
  services: FoundService[];
  /** Names of the services that calls and changes of this process meet in other processes. */
  elsewhere: string[];
}

type Asked = Pick<ConsoleEnv, 'role' | 'services'>;

/** Names in SERVICES that the next release refuses, each with the name to use instead. */
export function formerNames(services: readonly string[] | null): { former: string; name: string }[] {
  return (services ?? []).flatMap((former) => {
    const name = FORMER_NAMES.get(former);
    return name === undefined ? [] : [{ former, name }];
  });
}

/** The services that this environment asks for, by name; throws {@link EnvError} for names in SERVICES that are none. */
export async function discoverServices(env: Asked): Promise<Found> {
  const names = ROLES_OF_SERVICES.map(([name]) => name);
  const modules = new Map<string, ServiceModule>();
  const { wanted, omitted } = namesOf(env.services ?? [], names);
  if (wanted.length === 0) {
    const left = servicesOf(env.role).filter((name) => !omitted.has(name));
    if (left.length === 0) throw new EnvError([{ name: 'SERVICES', problem: 'leaves no service that is to run' }]);
    for (const name of left) modules.set(name, await load(name));
  } else {
    // The list grows by what belongs to its members.
    for (const name of wanted) {
      const module = await load(name);
      modules.set(name, module);
      for (const belonging of module.belongings ?? [])
        if (!omitted.has(belonging) && !wanted.includes(belonging)) wanted.push(belonging);
    }
    if (!modules.has(ALL_JOBS) && !omitted.has(ALL_JOBS)) return withOwnJobs(modules, names);
  }
  return foundOf(modules, names);
}

function servicesOf(role: ConsoleEnv['role']): string[] {
  const those = ROLES_OF_SERVICES.filter(([, roles]: readonly [string, readonly Role[]]) =>
    role === 'all' ? true : roles.includes(role),
  );
  return those.map(([name]) => name);
}

function namesOf(given: readonly string[], names: readonly string[]): { wanted: string[]; omitted: Set<string> } {
  const bare = given.map((name) => name.replace(/^-/, ''));
  const known = bare.map((name) => FORMER_NAMES.get(name) ?? name);
  const unknown = known.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    const problem = `names services that do not exist: ${unknown.join(', ')} (existing: ${names.join(', ')})`;
    throw new EnvError([{ name: 'SERVICES', problem }]);
  }
  const omitted = new Set(known.filter((_, index) => given[index]!.startsWith('-')));
  const wanted = [...new Set(known.filter((name) => !omitted.has(name)))];
  return { wanted, omitted };
}

async function load(name: string): Promise<ServiceModule> {
  return (await import(`./${name}/${name}.service.ts`)) as ServiceModule;
}

function foundOf(modules: ReadonlyMap<string, ServiceModule>, names: readonly string[]): Found {
  const services = [...modules].map(([name, module]) => ({
    name,
    pools: module.pools ?? FOR_REQUESTS,
    create: module.default,
  }));
  return { services, elsewhere: names.filter((name) => !modules.has(name)) };
}

/** Processes that have a job share it: one of them runs it at a time. */
async function withOwnJobs(modules: ReadonlyMap<string, ServiceModule>, names: readonly string[]): Promise<Found> {
  const found = foundOf(modules, names);
  const jobs: LeaderJob[] = [];
  for (const name of modules.keys()) {
    if (!(await exists(`${name}/feature.ts`))) continue;
    const { feature } = (await import(`./${name}/feature.ts`)) as { feature: ServiceFeature };
    jobs.push(...(feature.jobs ?? []));
  }
  if (jobs.length > 0) {
    const create = (runtime: Runtime): ServiceSchema => ({ name: 'own-jobs', mixins: [leaderJobs(runtime, jobs)] });
    found.services.push({ name: 'own-jobs', pools: FOR_JOBS, create });
  }
  return found;
}

/** The feeds of all folders, whatever the role: relays and the node channel carry what others emit. */
export async function discoverFeeds(): Promise<Feed[]> {
  const feeds: Feed[] = [];
  for (const name of await foldersWithFeed()) {
    const module = (await import(`./${name}/${name}.feed.ts`)) as { default: Feed };
    feeds.push(module.default);
  }
  return feeds;
}

async function foldersWithFeed(): Promise<string[]> {
  const folders = await readdir(import.meta.dirname, { withFileTypes: true });
  const names: string[] = [];
  for (const folder of folders.filter((entry) => entry.isDirectory())) {
    if (await exists(`${folder.name}/${folder.name}.feed.ts`)) names.push(folder.name);
  }
  return names.sort();
}

function exists(file: string): Promise<boolean> {
  return access(join(import.meta.dirname, file)).then(
    () => true,
    () => false,
  );
}
