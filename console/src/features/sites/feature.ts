import { Connection } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Sites', 'zh-CN': '站点' };

export default {
  routes: [
    { path: '/sites', name: 'sites', title, docs: 'concepts', component: () => import('./SitesPage.vue') },
    { path: '/sites/:id', name: 'site', title, docs: 'concepts', component: () => import('./SitePage.vue') },
  ],
  navigation: [{ group: 'top', order: 20, title, icon: Connection, to: '/sites' }],
  parts: [
    {
      of: 'site',
      name: 'overview',
      order: 10,
      title: { en: 'Overview', 'zh-CN': '概览' },
      component: () => import('./OverviewTab.vue'),
    },
    {
      of: 'site',
      name: 'domains',
      group: 'delivery',
      order: 10,
      title: { en: 'Domains', 'zh-CN': '域名' },
      component: () => import('./DomainsTab.vue'),
    },
    {
      of: 'site',
      name: 'origins',
      group: 'delivery',
      order: 20,
      title: { en: 'Origins', 'zh-CN': '源站' },
      docs: 'origins',
      component: () => import('./OriginsTab.vue'),
    },
    {
      of: 'site',
      name: 'settings',
      group: 'last',
      order: 90,
      title: { en: 'Settings', 'zh-CN': '设置' },
      component: () => import('./SettingsTab.vue'),
    },
  ],
  places: { site: (id, part = '') => (part ? `/sites/${id}/${part}` : `/sites/${id}`) },
  searchTitle: title,
  search: () => import('./search-sites.ts').then(({ searchSites }) => searchSites),
  actions: [{ title: { en: 'New site', 'zh-CN': '新建站点' }, to: '/sites?new=1' }],
  uses: ['audit', 'changes', 'contract', 'network', 'protection', 'statistics'],
} satisfies Feature;
