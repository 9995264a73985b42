import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** Folder of the repository. */
export const root = resolve(import.meta.dirname, '..', '..');

/** Folder for what can be built again: binaries, compile cache, test servers, logs. */
export const cacheDir = join(root, '.cache');

/** Folder for what takes minutes to build and is the same for all clones; what lies in it is named by a hash of its sources. */
export const sharedCacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'edge-delivery-console');

/** Where `npm run package:node` puts packages, and a console started here offers them from. */
export const downloadsDir = join(root, 'data', 'downloads');

/** Folders at the top that hold TypeScript. */
export const SOURCE_FOLDERS = [
  'agents',
  'bench',
  'bin',
  'client',
  'console',
  'contract',
  'migrations',
  'mixins',
  'models',
  'pipeline',
  'proto',
  'runtime',
  'services',
  'test',
];
