import { DataLine } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Usage', 'zh-CN': '用量' };
const traffic = { en: 'Traffic', 'zh-CN': '流量' };

export default {
  routes: [{ path: '/traffic', name: 'traffic', title: traffic, docs: 'usage' }],
  navigation: [{ group: 'top', order: 30, title: traffic, icon: DataLine, to: '/traffic' }],
  parts: [
    { of: 'traffic', name: 'usage', order: 20, title, component: () => import('./UsagePage.vue') },
    { of: 'site', name: 'usage', order: 25, title, docs: 'usage', component: () => import('./SiteUsage.vue') },
  ],
  actions: [
    {
      title: { en: 'Usage of the last month', 'zh-CN': '上个月的用量' },
      words: { en: 'billing traffic bandwidth csv', 'zh-CN': '计费 流量 带宽 导出' },
      to: '/traffic/usage?range=lastMonth',
    },
  ],
  uses: ['sites'],
} satisfies Feature;
