// The feature folders of this build: whoever has a feature.ts.
import type { Feature } from './feature.ts';

export const installed = import.meta.glob<{ default: Feature }>('../features/*/feature.ts', { eager: true });
