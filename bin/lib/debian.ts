// Debian packages, when this process may install them.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand, rootPrefix, run } from './commands.ts';
import { during, Refusal } from './progress.ts';

const INSTALL_TIMEOUT_MS = 10 * 60_000;

/** The command a person would run to install the packages. */
export function installCommand(packages: string[]): string {
  return `sudo apt-get install -y --no-install-recommends ${packages.join(' ')}`;
}

/** Whether `installPackages` could work: apt is there and root can be had without a password. */
export function mayInstall(): boolean {
  return findCommand('apt-get') !== undefined && rootPrefix() !== undefined;
}

/** Whether the lists of packages of this machine have the package. */
export async function isOffered(name: string): Promise<boolean> {
  try {
    const { stdout } = await run('apt-cache', ['show', name], { timeout: 60_000, maxBuffer: 1 << 26 });
    return stdout !== '';
  } catch {
    return false;
  }
}

const POLICY = '/usr/sbin/policy-rc.d';

/**
 * Installs Debian packages whose services nobody asked for: what they would start stays off, now and at the next start of
 * the machine. Throws as installPackages does.
 */
export async function installWithoutServices(packages: string[], services: string[]): Promise<void> {
  const asRoot = (script: string) => {
    const [command = 'sh', ...args] = [...(rootPrefix() ?? []), 'sh', '-c', script];
    return run(command, args, { timeout: INSTALL_TIMEOUT_MS });
  };
  // What maintainers' scripts ask before they start anything; one that is there already knows better.
  const made = await asRoot(
    `[ -e ${POLICY} ] || { printf '#!/bin/sh\\nexit 101\\n' > ${POLICY} && chmod 755 ${POLICY} && echo made; }`,
  );
  try {
    await installPackages(packages);
  } finally {
    if (made.stdout.includes('made')) await asRoot(`rm -f ${POLICY}`);
  }
  await asRoot(`! [ -d /run/systemd/system ] || systemctl disable --quiet ${services.join(' ')}`);
}

/** Installs Debian packages; throws a Refusal that names the command when it may not or cannot. */
export async function installPackages(packages: string[]): Promise<void> {
  const prefix = rootPrefix();
  const apt = findCommand('apt-get');
  if (!prefix || !apt) throw new Refusal(`install ${packages.join(', ')} first:\n  ${installCommand(packages)}`);
  const [command = apt, ...args] = [...prefix, apt];
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await during(`installing ${packages.join(', ')} with apt`, async (current) => {
    const install = () =>
      run(
        command,
        [...args, '-o', 'DPkg::Lock::Timeout=300', 'install', '-y', '--no-install-recommends', ...packages],
        {
          env,
          timeout: INSTALL_TIMEOUT_MS,
          maxBuffer: 1 << 26,
        },
      );
    try {
      await install();
    } catch {
      // Package lists of a fresh image are missing or old.
      current.detail('refreshing package lists');
      await run(command, [...args, 'update'], { env, timeout: INSTALL_TIMEOUT_MS, maxBuffer: 1 << 26 });
      await install();
    }
  }).catch((error: unknown) => {
    const output = (error as { stderr?: string }).stderr ?? String(error);
    throw new Refusal(
      `${output.trimEnd()}\napt could not install ${packages.join(', ')}. Install them manually:\n  ${installCommand(packages)}`,
    );
  });
}

/** Unpacks Debian packages below a folder, without installing them. Throws a Refusal where apt cannot load them. */
export async function unpackPackages(packages: readonly string[], folder: string): Promise<void> {
  const apt = findCommand('apt-get');
  if (!apt || !findCommand('dpkg-deb')) throw new Refusal('unpacking Debian packages needs apt-get and dpkg-deb');
  const options = { cwd: folder, timeout: INSTALL_TIMEOUT_MS, maxBuffer: 1 << 26 };
  await during(`unpacking ${packages.length} packages`, async (current) => {
    const download = () => run(apt, ['download', '-q', ...packages], options);
    try {
      await download();
    } catch {
      current.detail('refreshing package lists');
      const [command = apt, ...args] = [...(rootPrefix() ?? []), apt];
      await run(command, [...args, 'update'], options);
      await download();
    }
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.deb'))) {
      current.detail(file);
      await run('dpkg-deb', ['-x', join(folder, file), folder], options);
    }
  }).catch((error: unknown) => {
    const output = (error as { stderr?: string }).stderr ?? String(error);
    throw new Refusal(`${output.trimEnd()}\napt could not load ${packages.join(', ')}`);
  });
}
