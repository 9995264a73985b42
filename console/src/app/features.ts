// What the feature folders add, each list in its order.
import { PART_GROUPS } from '@/shared/page/parts.ts';
import type { NamedFeature, NavigationEntry, NavigationGroup, Part } from './feature.ts';
import { installed } from './installed.ts';

export const features: readonly NamedFeature[] = Object.entries(installed).map(([file, module]) => ({
  name: file.split('/').at(-2) as string,
  ...module.default,
}));

/** Entries of the navigation in their order. */
export function navigationOf(group: NavigationGroup): NavigationEntry[] {
  return features
    .flatMap((feature) => feature.navigation ?? [])
    .filter((entry) => entry.group === group)
    .sort((a, b) => a.order - b.order);
}

export interface OwnedPart extends Part {
  feature: NamedFeature;
}

const place = ({ group = 'top' }: Part) => PART_GROUPS.indexOf(group);

/** Parts of the route of this name in their order, group by group. */
export function partsOfRoute(name: string): OwnedPart[] {
  return features
    .flatMap((feature) => (feature.parts ?? []).map((part) => ({ ...part, feature })))
    .filter((part) => part.of === name)
    .sort((a, b) => place(a) - place(b) || a.order - b.order);
}
