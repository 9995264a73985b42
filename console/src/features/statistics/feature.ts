import type { Feature } from '@/app/feature.ts';

const title = { en: 'Statistics', 'zh-CN': '统计' };

export default {
  parts: [
    {
      of: 'traffic',
      name: 'statistics',
      order: 10,
      title,
      docs: 'statistics',
      component: () => import('./StatisticsPage.vue'),
    },
    {
      of: 'cluster',
      name: 'statistics',
      order: 15,
      title,
      docs: 'statistics',
      component: () => import('./ClusterStatistics.vue'),
    },
    {
      of: 'site',
      name: 'statistics',
      order: 20,
      title,
      docs: 'statistics',
      component: () => import('./SiteStatistics.vue'),
    },
  ],
  actions: [
    {
      title: { en: 'Statistics of the last 24 hours', 'zh-CN': '最近 24 小时的统计' },
      words: {
        en: 'analytics traffic errors 5xx latency cache hit ratio browsers top urls paths countries networks referrers',
        'zh-CN': '分析 流量 错误 延迟 命中率 浏览器 网址 国家 网络 来源',
      },
      to: '/traffic/statistics',
    },
  ],
  uses: ['network', 'sites'],
} satisfies Feature;
