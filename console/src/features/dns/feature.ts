import { Share } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'DNS', 'zh-CN': 'DNS' };

export default {
  routes: [{ path: '/dns', name: 'dns', title, docs: 'dns' }],
  navigation: [{ group: 'network', order: 20, title, icon: Share, to: '/dns' }],
  parts: [
    {
      of: 'dns',
      name: '',
      order: 10,
      title: { en: 'Clusters', 'zh-CN': '集群' },
      component: () => import('./DnsClusters.vue'),
    },
    {
      of: 'dns',
      name: 'providers',
      order: 20,
      title: { en: 'Provider accesses', 'zh-CN': '服务商凭据' },
      docs: 'dns#add-a-provider-access',
      component: () => import('./DnsProviders.vue'),
    },
    {
      of: 'dns',
      name: 'protection',
      order: 30,
      title: { en: 'Mass-removal protection', 'zh-CN': '大量移除保护' },
      docs: 'dns#mass-removal-protection',
      component: () => import('./DnsProtection.vue'),
    },
    {
      of: 'cluster',
      name: 'dns',
      order: 30,
      title,
      docs: 'dns',
      component: () => import('./ClusterDns.vue'),
    },
    {
      of: 'site',
      name: 'dns',
      group: 'delivery',
      order: 12,
      title,
      docs: 'dns#point-a-site-to-its-name',
      component: () => import('./SiteDns.vue'),
    },
    {
      of: 'node',
      name: 'addresses',
      order: 22,
      title: { en: 'Addresses', 'zh-CN': '地址' },
      docs: 'dns#addresses-of-a-node',
      component: () => import('./NodeAddresses.vue'),
    },
  ],
} satisfies Feature;
