import { Cpu, Grid } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const clusters = { en: 'Clusters', 'zh-CN': '集群' };
const nodes = { en: 'Nodes', 'zh-CN': '节点' };
const regions = { en: 'Regions', 'zh-CN': '区域' };

export default {
  routes: [
    {
      path: '/clusters',
      name: 'clusters',
      title: clusters,
      docs: 'edge-node',
      component: () => import('./ClustersPage.vue'),
    },
    {
      path: '/clusters/:id',
      name: 'cluster',
      title: clusters,
      docs: 'edge-node',
      component: () => import('./ClusterPage.vue'),
    },
    { path: '/nodes', name: 'nodes', title: nodes, docs: 'edge-node' },
    { path: '/nodes/:id', name: 'node', title: nodes, docs: 'edge-node', component: () => import('./NodePage.vue') },
  ],
  parts: [
    {
      of: 'cluster',
      name: 'overview',
      order: 10,
      title: { en: 'Overview', 'zh-CN': '概览' },
      component: () => import('./ClusterOverview.vue'),
    },
    {
      of: 'cluster',
      name: 'groups',
      order: 20,
      title: { en: 'Node groups', 'zh-CN': '节点组' },
      component: () => import('./GroupsTab.vue'),
    },
    {
      of: 'cluster',
      name: 'client-ip',
      group: 'delivery',
      order: 10,
      title: { en: 'Visitor address', 'zh-CN': '访客地址' },
      docs: 'edge-node#client-addresses',
      component: () => import('./ClientIpTab.vue'),
    },
    {
      of: 'cluster',
      name: 'unknown-hosts',
      group: 'delivery',
      order: 20,
      title: { en: 'Unknown hosts', 'zh-CN': '未知主机' },
      component: () => import('./UnknownHostsTab.vue'),
    },
    {
      of: 'cluster',
      name: 'ports',
      group: 'delivery',
      order: 30,
      title: { en: 'Ports', 'zh-CN': '端口' },
      docs: 'edge-node#ports',
      component: () => import('./PortsTab.vue'),
    },
    {
      of: 'cluster',
      name: 'header-limit',
      group: 'delivery',
      order: 40,
      title: { en: 'Request headers', 'zh-CN': '请求标头' },
      docs: 'edge-node#large-request-headers',
      component: () => import('./HeaderLimitTab.vue'),
    },
    {
      of: 'cluster',
      name: 'cache',
      group: 'delivery',
      order: 50,
      title: { en: 'Cache', 'zh-CN': '缓存' },
      docs: 'cache#give-the-cache-disk-space',
      component: () => import('./CacheTab.vue'),
    },
    { of: 'nodes', name: '', order: 10, title: nodes, component: () => import('./NodesPage.vue') },
    { of: 'nodes', name: 'regions', order: 20, title: regions, component: () => import('./RegionsPage.vue') },
    {
      of: 'node',
      name: 'overview',
      order: 10,
      title: { en: 'Overview', 'zh-CN': '概览' },
      component: () => import('./NodeOverview.vue'),
    },
    {
      of: 'node',
      name: 'load',
      order: 20,
      title: { en: 'Load', 'zh-CN': '负载' },
      component: () => import('./NodeLoad.vue'),
    },
    {
      of: 'node',
      name: 'cache',
      order: 25,
      title: { en: 'Cache', 'zh-CN': '缓存' },
      docs: 'cache#give-the-cache-disk-space',
      component: () => import('./NodeCacheTab.vue'),
    },
    {
      of: 'node',
      name: 'settings',
      group: 'last',
      order: 90,
      title: { en: 'Settings', 'zh-CN': '设置' },
      component: () => import('./NodeSettings.vue'),
    },
  ],
  places: {
    cluster: (id, part = '') => (part ? `/clusters/${id}/${part}` : `/clusters/${id}`),
    node: (id, part = '') => (part ? `/nodes/${id}/${part}` : `/nodes/${id}`),
  },
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
    { title: regions, to: '/nodes/regions' },
  ],
  uses: ['changes', 'contract', 'sites'],
} satisfies Feature;
