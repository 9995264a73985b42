import { Box } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'Cache', 'zh-CN': '缓存' };

export default {
  routes: [
    { path: '/cache', name: 'cache', title, docs: 'cache', component: () => import('./tasks/TasksPage.vue') },
    {
      path: '/cache/tasks/:id',
      name: 'cache-task',
      title: { en: 'Cache task', 'zh-CN': '缓存任务' },
      docs: 'cache#follow-a-purge',
      component: () => import('./tasks/TaskPage.vue'),
    },
  ],
  navigation: [{ group: 'delivery', order: 20, title, icon: Box, to: '/cache' }],
  parts: [
    {
      of: 'site',
      name: 'cache',
      group: 'delivery',
      order: 40,
      title,
      docs: 'cache',
      component: () => import('./CacheTab.vue'),
    },
  ],
  places: { cache_task: (id) => `/cache/tasks/${id}` },
  actions: [
    {
      title: { en: 'Purge the cache', 'zh-CN': '清除缓存' },
      words: { en: 'flush invalidate prefetch', 'zh-CN': '刷新 预取' },
      to: '/cache?new=1',
    },
  ],
  uses: ['rules', 'sites'],
} satisfies Feature;
