import { List } from '@element-plus/icons-vue';
import type { Feature } from '@/app/feature.ts';

const title = { en: 'IP lists', 'zh-CN': 'IP 名单' };

export default {
  routes: [
    { path: '/ip-lists', name: 'ip-lists', title, docs: 'ip-lists', component: () => import('./IpListsPage.vue') },
    {
      path: '/ip-lists/new',
      name: 'ip-list-new',
      title: { en: 'New IP list', 'zh-CN': '新建 IP 名单' },
      docs: 'ip-lists',
      component: () => import('./IpListPage.vue'),
    },
    { path: '/ip-lists/:id', name: 'ip-list', title, docs: 'ip-lists', component: () => import('./IpListPage.vue') },
  ],
  navigation: [{ group: 'protection', order: 30, title, icon: List, to: '/ip-lists' }],
  places: { ip_list: (id) => `/ip-lists/${id}` },
  searchTitle: title,
  search: () => import('./search-ip-lists.ts').then(({ searchIpLists }) => searchIpLists),
  actions: [{ title: { en: 'New IP list', 'zh-CN': '新建 IP 名单' }, to: '/ip-lists/new' }],
} satisfies Feature;
