// The feature folders of a console with everything in it: twenty-four entries of the navigation, an object with fourteen parts.
import { Connection } from '@element-plus/icons-vue';
import type { Feature, NavigationGroup, Part } from '../../../console/src/app/feature.ts';

const both = (text: string) => ({ en: text, 'zh-CN': text });

const ENTRIES: readonly [group: NavigationGroup, ...titles: string[]][] = [
  ['top', 'Overview', 'Sites', 'Traffic', 'Logs'],
  ['delivery', 'Certificates', 'Cache', 'Pages', 'L4 apps', 'Compression'],
  ['protection', 'Incidents', 'Bans', 'IP lists', 'Global rules', 'Bots'],
  ['network', 'Clusters', 'Nodes', 'DNS & scheduling', 'Rollouts', 'Probes'],
  ['system', 'Alerts', 'Audit', 'Access', 'Settings', 'Backups'],
];

const PARTS: readonly [group: NonNullable<Part['group']>, ...titles: string[]][] = [
  ['top', 'Overview', 'Statistics', 'Logs'],
  ['delivery', 'Domains & HTTPS', 'Origins', 'Cache', 'Rules', 'Pages'],
  ['protection', 'Challenges', 'WAF', 'Bans', 'Events'],
  ['last', 'History', 'Settings'],
];

const nameOf = (title: string) => title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

const crowd: Feature = {
  routes: [
    { path: '/things/:id', name: 'thing', title: both('Things'), open: true, component: () => import('./Thing.vue') },
  ],
  navigation: ENTRIES.flatMap(([group, ...titles]) =>
    titles.map((title, order) => ({
      group,
      order,
      title: both(title),
      icon: Connection,
      to: title === 'Sites' ? '/things' : `/${nameOf(title)}`,
    })),
  ),
  parts: PARTS.flatMap(([group, ...titles]) =>
    titles.map((title, order) => ({
      of: 'thing',
      name: nameOf(title),
      group,
      order,
      title: both(title),
      component: () => import('./ThingPart.vue'),
    })),
  ),
};

export const installed = { '../features/crowd/feature.ts': { default: crowd } };
