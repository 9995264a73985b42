// Which procedure a method and raw path mean. Built once from the contract; a look-up walks the segments.
import { type AnyProcedure, pathInputs } from '../../contract/procedure.ts';
import { type QueryReader, queryReader } from './query.ts';
import { segmentValue } from './request-target.ts';

export interface ApiRoute {
  readonly procedure: AnyProcedure;
  readonly pathInputs: readonly string[];
  readonly readQuery: QueryReader;
}

export interface RouteMatch {
  route: ApiRoute;
  /** Inputs taken from the path, by name. */
  params: Record<string, string>;
}

interface Branch {
  literals: Map<string, Branch>;
  input: Branch | null;
  /** By method. */
  routes: Map<string, ApiRoute>;
}

const branch = (): Branch => ({ literals: new Map(), input: null, routes: new Map() });

export class RouteTable {
  readonly #root = branch();

  /** Throws when two procedures claim one method and path. */
  constructor(procedures: Iterable<AnyProcedure>) {
    for (const procedure of procedures) this.#add(procedure);
  }

  #add(procedure: AnyProcedure): void {
    let at = this.#root;
    for (const segment of segments(procedure.path)) {
      if (segment.startsWith('{')) {
        at.input ??= branch();
        at = at.input;
      } else {
        let next = at.literals.get(segment);
        if (!next) {
          next = branch();
          at.literals.set(segment, next);
        }
        at = next;
      }
    }
    const taken = at.routes.get(procedure.method);
    if (taken) throw new Error(`${procedure.name} and ${taken.procedure.name} have the same method and path`);
    const inputs = pathInputs(procedure.path);
    at.routes.set(procedure.method, {
      procedure,
      pathInputs: inputs,
      readQuery: queryReader(procedure.input, inputs, procedure.method),
    });
  }

  /** The route of a path below the prefix, such as `/sites/123`; null when nothing is there. */
  match(method: string, path: string): RouteMatch | null {
    const values: string[] = [];
    const found = find(this.#root, segments(path), 0, method, values);
    if (!found) return null;
    const params: Record<string, string> = {};
    for (let index = 0; index < values.length; index++) params[found.pathInputs[index]!] = values[index]!;
    return { route: found, params };
  }
}

function segments(path: string): string[] {
  return path.slice(1).split('/');
}

/** A literal segment goes before an input; the input is tried when the literal leads nowhere. */
function find(at: Branch, parts: string[], index: number, method: string, values: string[]): ApiRoute | null {
  if (index === parts.length) return at.routes.get(method) ?? null;
  const part = parts[index]!;
  const literal = at.literals.get(part);
  if (literal) {
    const found = find(literal, parts, index + 1, method, values);
    if (found) return found;
  }
  if (!at.input) return null;
  const value = segmentValue(part);
  if (value === null) return null;
  values.push(value);
  const found = find(at.input, parts, index + 1, method, values);
  if (!found) values.pop();
  return found;
}
