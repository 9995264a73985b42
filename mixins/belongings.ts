// What a process runs beside a service that SERVICES names, so that the service is whole there. A service declares it as
// `belongings`; jobs of its feature.ts belong to it by themselves.

/** Of services whose changes are published to nodes. */
export const PUBLISHING = ['relay', 'revision-fanout', 'canary-fanout'] as const;
