// Every procedure, one line a resource. Names are `<resource>.<key>`.
import type { AnyProcedure, Resource } from './procedure.ts';

export const RESOURCES: readonly Resource[] = [];

/** All procedures by name. */
export const PROCEDURES: ReadonlyMap<string, AnyProcedure> = new Map(
  RESOURCES.flatMap((resource) => Object.values(resource).map((procedure) => [procedure.name, procedure])),
);
