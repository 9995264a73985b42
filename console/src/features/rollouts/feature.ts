import { Promotion } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Rollouts', 'zh-CN': '灰度发布' };

export default {
  routes: [
    { path: '/rollouts', name: 'rollouts', title, docs: 'canary', component: () => import('./RolloutsPage.vue') },
    {
      path: '/rollouts/:clusterId/events/:eventId',
      name: 'rollout-event',
      title: { en: 'Rollout event', 'zh-CN': '灰度事件' },
      docs: 'canary',
      component: () => import('./EventPage.vue'),
    },
  ],
  navigation: [{ group: 'network', order: 40, title, icon: Promotion, to: '/rollouts' }],
  places: { rollout: (clusterId) => `/rollouts?clusterId=${clusterId}` },
  actions: [
    {
      title: { en: 'Current canary', 'zh-CN': '当前灰度' },
      words: { en: 'canary promote abort undo', 'zh-CN': '灰度 全量发布 中止 撤销' },
      to: '/rollouts',
    },
  ],
  uses: ['contract', 'network'],
} satisfies Feature;
