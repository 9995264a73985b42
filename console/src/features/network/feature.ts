import { Cpu, Grid } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const clusters = { en: 'Clusters', 'zh-CN': '集群' };
const nodes = { en: 'Nodes', 'zh-CN': '节点' };

export default {
  routes: [
    { path: '/clusters', name: 'clusters', title: clusters, component: () => import('./ClustersPage.vue') },
    {
      path: '/clusters/:id',
      name: 'cluster',
      title: clusters,
      component: () => import('./ClusterPage.vue'),
      children: [
        {
          path: 'overview',
          name: 'cluster-overview',
          title: { en: 'Overview', 'zh-CN': '概览' },
          component: () => import('./ClusterOverview.vue'),
        },
        {
          path: 'client-ip',
          name: 'cluster-client-ip',
          title: { en: 'Client address', 'zh-CN': '客户端地址' },
          component: () => import('./ClientIpTab.vue'),
        },
        {
          path: 'unknown-hosts',
          name: 'cluster-unknown-hosts',
          title: { en: 'Unknown hosts', 'zh-CN': '未知主机' },
          component: () => import('./UnknownHostsTab.vue'),
        },
        {
          path: 'revisions',
          name: 'cluster-revisions',
          title: { en: 'Revisions', 'zh-CN': '版本' },
          component: () => import('./RevisionsTab.vue'),
        },
        {
          path: 'groups',
          name: 'cluster-groups',
          title: { en: 'Node groups', 'zh-CN': '节点组' },
          component: () => import('./GroupsTab.vue'),
        },
      ],
    },
    { path: '/nodes', name: 'nodes', title: nodes, component: () => import('./NodesPage.vue') },
    { path: '/nodes/:id', name: 'node', title: nodes, component: () => import('./NodePage.vue') },
    {
      path: '/regions',
      name: 'regions',
      title: { en: 'Regions', 'zh-CN': '区域' },
      component: () => import('./RegionsPage.vue'),
    },
  ],
  navigation: [
    { group: 'network', order: 10, title: clusters, icon: Grid, to: '/clusters' },
    { group: 'network', order: 15, title: nodes, icon: Cpu, to: '/nodes' },
  ],
  searchTitle: nodes,
  search: () => import('./search-nodes.ts').then(({ searchNodes }) => searchNodes),
  actions: [
    {
      title: { en: 'Add a node', 'zh-CN': '添加节点' },
      words: { en: 'enroll install', 'zh-CN': '注册 安装' },
      to: '/nodes?new=1',
    },
    { title: { en: 'New cluster', 'zh-CN': '新建集群' }, to: '/clusters?new=1' },
    { title: { en: 'Regions', 'zh-CN': '区域' }, to: '/regions' },
  ],
  uses: ['contract', 'sites'],
} satisfies Feature;
