// Every feature folder, found by its feature.ts.
import type { Feature, NamedFeature, NavigationEntry, NavigationGroup, SiteTab } from './feature.ts';

const FILES = import.meta.glob<{ default: Feature }>('../features/*/feature.ts', { eager: true });

export const features: readonly NamedFeature[] = Object.entries(FILES).map(([file, module]) => ({
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

export interface OwnedSiteTab extends SiteTab {
  feature: NamedFeature;
}

export function siteTabs(): OwnedSiteTab[] {
  return features
    .flatMap((feature) => (feature.siteTabs ?? []).map((tab) => ({ ...tab, feature })))
    .sort((a, b) => a.order - b.order);
}
