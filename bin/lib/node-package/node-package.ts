// A node package: everything a machine needs to be an edge node, as one archive per processor beside its checksums.
//
//   svc-edge/latest                                        the newest version, for installers
//   svc-edge/v1.2.3/checksums.txt                          SHA-256 of each archive
//   svc-edge/v1.2.3/svc-edge_1.2.3_linux_amd64.tar.gz
//
// The same sources give the same bytes: a version stays what it was, and may be made on several machines.
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { buildCaddy } from '../caddy.ts';
import { geoipDatabases } from '../geoip/databases.ts';
import { during, Refusal } from '../progress.ts';
import { root } from '../root.ts';
import { type AgentBundle, bundleAgent } from './agent-bundle.ts';
import { goModules, licenceTexts } from './licences.ts';
import { nodeRuntime } from './node-runtime.ts';
import { type Entry, tarball } from './tarball.ts';

export const PACKAGE = 'svc-edge';

/** Processors there are packages for, in the package's words and in Node's. */
export const ARCHITECTURES = { amd64: 'x64', arm64: 'arm64' } as const;
export type Architecture = keyof typeof ARCHITECTURES;

export interface PackageOptions {
  /** Folder of downloads. */
  out: string;
  version: string;
  architectures: readonly Architecture[];
  /** Puts another content in place of an archive that is there. */
  replace: boolean;
}

export interface MadeArchive {
  file: string;
  sha256: string;
}

/** Makes the archives, their checksums, and names the version as the latest. */
export async function makeNodePackage(options: PackageOptions): Promise<MadeArchive[]> {
  const folder = join(options.out, PACKAGE, `v${options.version}`);
  mkdirSync(folder, { recursive: true });
  const bundle = await bundleAgent();
  const made: MadeArchive[] = [];
  for (const architecture of options.architectures) {
    const name = `${PACKAGE}_${options.version}_linux_${architecture}.tar.gz`;
    const entries = await entriesOf(architecture, options.version, bundle);
    made.push(
      await during(`packing ${name}`, () => writeArchive(join(folder, name), tarball(entries), options.replace)),
    );
  }
  await replaceFile(join(folder, 'checksums.txt'), checksums(join(folder, 'checksums.txt'), made));
  await replaceFile(join(options.out, PACKAGE, 'latest'), `v${options.version}\n`);
  return made;
}

async function entriesOf(architecture: Architecture, version: string, bundle: AgentBundle): Promise<Entry[]> {
  const target = { platform: 'linux', arch: ARCHITECTURES[architecture] };
  const runtime = await nodeRuntime(target.arch);
  const caddy = await buildCaddy(target);
  const geoip = await geoipDatabases();
  const works = [...bundle.works, runtime.work, ...geoip.works, ...(await goModules(target))];
  const source = (path: string) => ({ file: join(root, path) });
  const manifest = { name: PACKAGE, version, license: 'Apache-2.0', type: 'module', os: ['linux'], cpu: [target.arch] };
  const entries: Entry[] = [
    { name: 'LICENSE', content: source('LICENSE') },
    { name: 'NOTICE', content: source('NOTICE') },
    { name: 'licences.txt', content: licenceTexts(works) },
    { name: 'package.json', content: `${JSON.stringify(manifest, null, 2)}\n` },
    { name: `bin/${PACKAGE}`, content: source(`agents/edge/package/${PACKAGE}`), executable: true },
    { name: 'bin/svc-caddy', content: { file: caddy }, executable: true },
    { name: 'bin/node', content: { file: runtime.binary }, executable: true },
    { name: `lib/agent/${PACKAGE}.mjs`, content: bundle.code },
    { name: 'lib/geoip/country.mmdb', content: { file: geoip.country } },
    { name: 'lib/geoip/asn.mmdb', content: { file: geoip.asn } },
    ...[`${PACKAGE}.service`, `${PACKAGE}-hold.service`].map((unit) => ({
      name: `lib/${unit}`,
      content: source(`agents/edge/package/${unit}`),
    })),
  ];
  return entries.map((entry) => ({ ...entry, name: `${PACKAGE}/${entry.name}` }));
}

async function writeArchive(file: string, bytes: AsyncIterable<Uint8Array>, replace: boolean): Promise<MadeArchive> {
  const temporary = temporaryName(file);
  try {
    await pipeline(Readable.from(bytes), createGzip(), createWriteStream(temporary));
    const sha256 = await hashOf(temporary);
    if (existsSync(file) && !replace && (await hashOf(file)) !== sha256)
      throw new Refusal(
        `${file} exists with other content, and machines may have installed it.\n` +
          'Choose another version with --version, or replace it with --replace.',
      );
    renameSync(temporary, file);
    return { file, sha256 };
  } finally {
    rmSync(temporary, { force: true });
  }
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** Lines as sha256sum writes them; those of other archives stay. */
function checksums(file: string, made: readonly MadeArchive[]): string {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const byName = new Map(lines.filter((line) => line !== '').map((line) => [line.slice(66), line.slice(0, 64)]));
  for (const { file: archive, sha256 } of made) byName.set(archive.slice(archive.lastIndexOf('/') + 1), sha256);
  return [...byName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, sum]) => `${sum}  ${name}\n`)
    .join('');
}

/** Readers see the old text or the new one. */
async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = temporaryName(file);
  await writeFile(temporary, text);
  renameSync(temporary, file);
}

/** A dot file beside it: the console serves none. */
function temporaryName(file: string): string {
  const slash = file.lastIndexOf('/') + 1;
  return `${file.slice(0, slash)}.${file.slice(slash)}.${process.pid}`;
}
