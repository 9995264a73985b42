// What the feature folders add, each list in its order.
import { PART_GROUPS, partPath } from '@/shared/page/parts.ts';
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

/** Pages that are tabs below an entry of the navigation, with that entry's title in front. */
export const tabs: readonly Pick<NavigationEntry, 'title' | 'to'>[] = features
  .flatMap((feature) => feature.routes ?? [])
  .filter(({ component }) => !component)
  .flatMap(({ name, path, title }) =>
    partsOfRoute(name)
      .filter((part) => part.name !== '')
      .map((part) => ({
        title: { en: `${title.en}: ${part.title.en}`, 'zh-CN': `${title['zh-CN']}：${part.title['zh-CN']}` },
        to: partPath(path, part),
      })),
  );
