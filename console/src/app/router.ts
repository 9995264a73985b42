// Routes of all feature folders. Before a page is shown, its messages are there and somebody is signed in; afterwards its
// title is the document's and has the focus.
import { nextTick } from 'vue';
import { createRouter, createWebHistory, type RouteLocationNormalized, type RouteRecordRaw } from 'vue-router';
import { loadMessages, tx } from '@/shared/i18n/i18n.ts';
import type { Text } from '@/shared/i18n/locale.ts';
import { pageSubject, setTabs } from '@/shared/page/page-context.ts';
import { useSession } from '@/shared/session/session.ts';
import type { FeatureRoute, NamedFeature } from './feature.ts';
import { features, navigationOf, siteTabs } from './features.ts';

declare module 'vue-router' {
  interface RouteMeta {
    title?: Text;
    bare?: boolean;
    open?: boolean;
    folders?: readonly string[];
  }
}

function record(
  feature: NamedFeature,
  route: FeatureRoute | NonNullable<FeatureRoute['children']>[number],
): RouteRecordRaw {
  const { path, name, title, component, redirect, children = [] } = route;
  const { bare, open } = route as FeatureRoute;
  const inside = children.map((child) => record(feature, child));
  if (name === 'site') inside.push(...siteTabRecords());
  const meta = {
    title,
    folders: [feature.name, ...(feature.uses ?? [])],
    ...(bare ? { bare } : {}),
    ...(open ? { open } : {}),
  };
  const base = { path, meta, component, ...(redirect ? { redirect } : {}) };
  return (inside.length > 0 ? { ...base, children: inside } : { ...base, name }) as RouteRecordRaw;
}

function siteTabRecords(): RouteRecordRaw[] {
  const tabs = siteTabs();
  setTabs('site', tabs);
  const first = tabs[0];
  if (!first) return [];
  return [
    { path: '', redirect: (to) => ({ name: `site-${first.name}`, params: to.params }) },
    ...tabs.map(({ name, title, component, feature }) => ({
      path: name,
      name: `site-${name}`,
      component,
      meta: { title, folders: [feature.name, ...(feature.uses ?? [])] },
    })),
  ];
}

export const router = createRouter({
  history: createWebHistory(),
  routes: [
    { path: '/', redirect: () => navigationOf('top')[0]?.to ?? '/account' },
    ...features.flatMap((feature) => (feature.routes ?? []).map((route) => record(feature, route))),
    {
      path: '/:rest(.*)*',
      name: 'not-found',
      component: () => import('./NotFoundPage.vue'),
      meta: { title: { en: 'Not found', 'zh-CN': '未找到' } },
    },
  ],
  scrollBehavior: (to, from, saved) => saved ?? (to.path === from.path ? false : { top: 0 }),
});

router.beforeEach(async (to) => {
  if (to.meta.open) return true;
  const session = useSession();
  if (session.me) return true;
  fetchAhead(to);
  if (await session.refresh()) return true;
  return entrance(to.fullPath);
});

/** Fetches the page and its messages while the console is asked who is signed in; the navigation tells of failures. */
function fetchAhead(to: RouteLocationNormalized): void {
  const pages = to.matched.flatMap(({ components }) => Object.values(components ?? {}));
  const fetching = pages.map((page) => (typeof page === 'function' ? (page as () => Promise<unknown>)() : undefined));
  Promise.all([loadMessages(foldersOf(to)), ...fetching]).catch(() => undefined);
}

/** Where somebody without a session goes: set-up while the console has no operator, else sign-in. */
async function entrance(target: string) {
  const [{ call }, { system }] = await Promise.all([
    import('@/shared/api/call.ts'),
    import('@contract/resources/system.ts'),
  ]);
  const { initialized } = await call(system.status, {}, { renewSession: false });
  return initialized ? { path: '/login', query: target === '/' ? {} : { to: target } } : { path: '/setup' };
}

router.beforeResolve(async (to) => {
  await loadMessages(foldersOf(to));
});

function foldersOf(to: RouteLocationNormalized): string[] {
  return [...new Set(to.matched.flatMap((matched) => matched.meta.folders ?? []))];
}

export function titleOf(title: Text | undefined): string {
  return [pageSubject.value, title ? tx(title) : '', 'Edge Delivery Console'].filter((part) => part !== '').join(' · ');
}

router.afterEach(async (to, from, failure) => {
  if (failure) return;
  if (to.matched[0] !== from.matched[0]) pageSubject.value = '';
  if (from.matched.length === 0 || to.path === from.path) return;
  await nextTick();
  // Tabs of one object keep the focus where it is.
  if (to.matched[0] !== from.matched[0])
    document.querySelector<HTMLElement>('h1[tabindex]')?.focus({ preventScroll: true });
});
