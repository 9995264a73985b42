// The contract for the browser: procedure files are evaluated when the console is built and become plain data, so that
// neither TypeBox nor answers' schemas travel. What a page imports is still typed by the files themselves.
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'vite';

const RESOURCE = /\/contract\/resources\/[a-z0-9-]+\.ts$/;

interface ProcedureLike {
  name: string;
  method: string;
  path: string;
  input: unknown;
  access: unknown;
}

function isProcedure(value: unknown): value is ProcedureLike {
  return typeof value === 'object' && value !== null && 'method' in value && 'input' in value && 'access' in value;
}

/** What the browser needs of a procedure; answers are typed, never validated there. */
function slim({ name, method, path, input, access }: ProcedureLike): ProcedureLike {
  return { name, method, path, input, access };
}

function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value);
  if (entries.length > 0 && entries.every(([, item]) => isProcedure(item)))
    return Object.fromEntries(entries.map(([key, item]) => [key, slim(item as ProcedureLike)]));
  return value;
}

export function contractPlugin(): Plugin {
  return {
    name: 'contract-as-data',
    enforce: 'pre',
    async load(id) {
      const file = id.split('?', 1)[0] as string;
      if (!RESOURCE.test(file)) return null;
      const exports = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
      const lines = Object.entries(exports)
        .filter(([, value]) => typeof value !== 'function')
        .map(([name, value]) => `export const ${name} = ${JSON.stringify(plain(value))};`);
      return lines.join('\n');
    },
  };
}
