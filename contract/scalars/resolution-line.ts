// Resolution lines: groups of resolvers (ISP views) that a provider answers differently.
export const RESOLUTION_LINES = ['default', 'telecom', 'unicom', 'mobile', 'edu', 'overseas'] as const;
export type ResolutionLine = (typeof RESOLUTION_LINES)[number];
