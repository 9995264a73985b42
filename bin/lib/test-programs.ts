// Programs of the machine that tests and benchmarks use, and the Debian packages that have them.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { findCommand } from './commands.ts';
import { installCommand, installPackages, installWithoutServices, isOffered, mayInstall } from './debian.ts';
import { Refusal, say } from './progress.ts';

/** Programs that tests use. */
const TEST_PACKAGES: Record<string, string> = {
  nft: 'nftables',
  ip: 'iproute2',
  unshare: 'util-linux',
  flock: 'util-linux',
  script: 'bsdutils',
  curl: 'curl',
  openssl: 'openssl',
  nginx: 'nginx',
  named: 'bind9',
  knotd: 'knot',
  knsupdate: 'knot-dnsutils',
  pdns_server: 'pdns-server',
  pgbouncer: 'pgbouncer',
  exim4: 'exim4-daemon-light',
  promtool: 'prometheus',
  chromium: 'chromium',
  gcc: 'gcc',
};

/** Programs that benchmarks alone use. */
const BENCH_PACKAGES: Record<string, string> = {
  wrk: 'wrk',
  haproxy: 'haproxy',
  varnishd: 'varnish',
  'prometheus-alertmanager': 'prometheus-alertmanager',
};

/** Packages that would serve something as soon as they are there. */
const SERVICES: Record<string, string> = {
  nginx: 'nginx',
  bind9: 'named',
  knot: 'knot',
  'pdns-server': 'pdns',
  pgbouncer: 'pgbouncer',
  haproxy: 'haproxy',
  varnish: 'varnish',
  'prometheus-alertmanager': 'prometheus-alertmanager',
  'exim4-daemon-light': 'exim4',
  prometheus: 'prometheus',
};

/** A C compiler without these compiles nothing; Go's race detector needs one. */
const C_HEADERS = '/usr/include/stdlib.h';

/** PowerDNS keeps its zones in it. */
const PDNS_BACKEND = '/usr/lib/*/pdns/liblmdbbackend.so';

/** Installs what tests need and is missing; throws a Refusal with the command when it may not. */
export async function ensureTestPrograms(): Promise<void> {
  const missing = missingPackages(TEST_PACKAGES, Object.keys(TEST_PACKAGES));
  if (!existsSync(C_HEADERS)) missing.push('libc6-dev');
  if (!canMakeVenv()) missing.push('python3-venv');
  if (globSync(PDNS_BACKEND).length === 0) missing.push('pdns-backend-lmdb');
  await installMissing(missing, 'Tests need');
}

/** Installs those of the programs that are missing; throws a Refusal with the command when it may not. */
export async function ensureBenchPrograms(programs: readonly string[]): Promise<void> {
  await installMissing(missingPackages({ ...TEST_PACKAGES, ...BENCH_PACKAGES }, programs), 'The benchmark needs');
}

function missingPackages(packages: Record<string, string>, programs: readonly string[]): string[] {
  return programs.flatMap((program) => {
    const name = packages[program];
    if (name === undefined) throw new Error(`no package is known to contain ${program}`);
    return findCommand(program) ? [] : [name];
  });
}

async function installMissing(missing: string[], who: string): Promise<void> {
  if (missing.length === 0) return;
  if (!mayInstall()) throw new Refusal(`${who} programs that are missing:\n  ${installCommand(missing)}`);
  // Debian's would take ports of the machine.
  const services = Object.entries(SERVICES).flatMap(([name, service]) => (missing.includes(name) ? [service] : []));
  if (services.length > 0) await installWithoutServices(missing, services);
  else await installPackages(missing);
}

/** Opens a page for a third of Chromium's processor time. Not every distribution has it: tests run without, too. */
const QUICK_BROWSER = 'chromium-headless-shell';

/** Installs the browser that tests of pages would rather have, where that is possible. */
export async function ensureQuickBrowser(): Promise<void> {
  if (findCommand(QUICK_BROWSER) || !mayInstall() || !(await isOffered(QUICK_BROWSER))) return;
  try {
    await installPackages([QUICK_BROWSER]);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(`${error.message}\nPage tests run in Chromium instead and take longer.`);
  }
}

/** Debian's python3 comes without what makes virtual environments with pip. */
function canMakeVenv(): boolean {
  return spawnSync('python3', ['-c', 'import ensurepip, venv'], { stdio: 'ignore' }).status === 0;
}
