import { join, resolve } from 'node:path';

/** Folder of the repository. */
export const root = resolve(import.meta.dirname, '..', '..');

/** Folder for what can be built again: binaries, compile cache, test servers, logs. */
export const cacheDir = join(root, '.cache');

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
