import type { Feature } from '@/app/feature.ts';

export default {
  parts: [
    {
      of: 'cluster',
      name: 'revisions',
      group: 'last',
      order: 10,
      title: { en: 'Revisions', 'zh-CN': '版本' },
      docs: 'rollback',
      component: () => import('./ClusterRevisions.vue'),
    },
  ],
  uses: ['changes', 'contract'],
} satisfies Feature;
