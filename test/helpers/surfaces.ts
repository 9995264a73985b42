// What tests of the whole surface need to know of a resource: test/surface/<resource>.ts exports one as `surface`.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../bin/lib/root.ts';
import type { Api, Body } from './resources.ts';

/** How a resource is made for a call that ends it; `id` is where its id is in the answer. */
export interface Recipe {
  path: string;
  body: unknown;
  id: readonly string[];
  /** Path parameter that takes the id. */
  parameter: string;
}

/** What makes calls succeed, by procedure; `{n}` stands for a number that differs from call to call. */
export interface Calls {
  /** Path parameters that lead to something that is there. */
  paths?: Record<string, Record<string, string>>;
  /** How to make what the call ends. */
  fresh?: Record<string, Recipe>;
  bodies?: Record<string, unknown>;
}

/** A procedure with expectedUpdatedAt: how its resource is made, and which request changes it. */
export interface Lock {
  make(api: Api, unique: (word: string) => string): Promise<string>;
  request(id: string, unique: (word: string) => string): [method: string, path: string, body: Record<string, unknown>];
  /** Where updatedAt stands in the answer, unless at its top. */
  updatedAt?(answer: Body): string;
}

export interface Surface {
  /** Makes what the calls need, and answers how they succeed. */
  calls?(api: Api): Promise<Calls>;
  locks?: Readonly<Record<string, Lock>>;
}

const folder = join(root, 'test', 'surface');

/** The surfaces of all resources that have a file. */
export async function surfaces(): Promise<Surface[]> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  return Promise.all(
    names.sort().map(async (name) => ((await import(join(folder, name))) as { surface: Surface }).surface),
  );
}
