// Every procedure. Names are `<resource>.<key>`; a file of resources/ is found by itself.
import { RESOURCE_FILES } from './gen/resources.ts';
import type { AnyProcedure, Resource } from './procedure.ts';
import { live } from './resources/live.ts';
import { logTail } from './resources/log-tail.ts';
import type { AnyStream } from './stream.ts';

/** All groups of procedures, by file. */
export const RESOURCES: readonly Resource[] = RESOURCE_FILES.flatMap((file) => Object.values(file).filter(isResource));

/** All procedures by name. */
export const PROCEDURES: ReadonlyMap<string, AnyProcedure> = new Map(
  RESOURCES.flatMap((resource) => Object.values(resource).map((procedure) => [procedure.name, procedure])),
);

/** All streams by name. They are no part of /api/v1. */
export const STREAMS: ReadonlyMap<string, AnyStream> = new Map(
  [...Object.values(live), ...Object.values(logTail)].map((stream) => [stream.name, stream]),
);

function isResource(value: unknown): value is Resource {
  if (typeof value !== 'object' || value === null) return false;
  const members: unknown[] = Object.values(value);
  return members.length > 0 && members.every(isProcedure);
}

function isProcedure(value: unknown): value is AnyProcedure {
  return typeof value === 'object' && value !== null && 'name' in value && 'path' in value && 'input' in value;
}
