// Country and autonomous system of an address, by the databases that the console is given.
import { readFile, stat } from 'node:fs/promises';
import { Reader, type Response } from 'mmdb-lib';
import { formatAddress, parseAddress } from '../contract/scalars/cidr.ts';
import type { Runtime } from './runtime.ts';

/** What is known of an address; null: there is no database that tells. Empty or 0: the database does not have it. */
export interface Location {
  country: string | null;
  asnum: number | null;
  asName: string | null;
}

interface Opened {
  /** Of the file as it was read. */
  version: string;
  reader: Reader<Response>;
}

const opened = new Map<string, Opened>();

export async function locate({ env, log }: Pick<Runtime, 'env' | 'log'>, address: string): Promise<Location> {
  const plain = formatAddress(parseAddress(address)!);
  const recordIn = async (path: string | null): Promise<object | null | undefined> => {
    if (path === null) return undefined;
    try {
      return (await readerOf(path)).get(plain);
    } catch (err) {
      log.warn({ err, path }, 'GeoIP database not usable');
      return undefined;
    }
  };
  const [country, system] = await Promise.all([recordIn(env.geoipCountry), recordIn(env.geoipAsn)]);
  return {
    country: country === undefined ? null : textAt(country, 'country_code') || textAt(country, 'country', 'iso_code'),
    asnum: system === undefined ? null : Number(valueAt(system, 'autonomous_system_number') ?? 0),
    asName: system === undefined ? null : textAt(system, 'autonomous_system_organization'),
  };
}

/** Read at the first use, and again when the file is another. */
async function readerOf(path: string): Promise<Reader<Response>> {
  const { mtimeMs, size, ino } = await stat(path);
  const version = `${ino} ${mtimeMs} ${size}`;
  const known = opened.get(path);
  if (known?.version === version) return known.reader;
  const reader = new Reader(await readFile(path));
  opened.set(path, { version, reader });
  return reader;
}

function valueAt(record: unknown, ...path: string[]): unknown {
  return path.reduce((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], record);
}

function textAt(record: object | null, ...path: string[]): string {
  const text = valueAt(record, ...path);
  return typeof text === 'string' ? text : '';
}
