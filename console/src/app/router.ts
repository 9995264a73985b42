// Routes of all feature folders. Before a page is shown, its messages are there and somebody is signed in; afterwards its
// title is the document's and has the focus.
import { type Component, nextTick } from 'vue';
import {
  createRouter,
  createWebHistory,
  type RouteLocation,
  type RouteLocationNormalized,
  type RouteRecordRaw,
  RouterView,
} from 'vue-router';
import { loadMessages, tx } from '@/shared/i18n/i18n.ts';
import type { Text } from '@/shared/i18n/locale.ts';
import { pageSubject } from '@/shared/page/page-context.ts';
import { setParts } from '@/shared/page/parts.ts';
import { setPlaces } from '@/shared/page/places.ts';
import { useSession } from '@/shared/session/session.ts';
import type { DocsPlace, FeatureRoute, NamedFeature } from './feature.ts';
import { features, navigationOf, type OwnedPart, partsOfRoute } from './features.ts';
import { noteLoaded, noteLoadFailure } from './load-failure.ts';
import { untilAnswered } from './until-answered.ts';

declare module 'vue-router' {
  interface RouteMeta {
    title?: Text;
    bare?: boolean;
    open?: boolean;
    docs?: DocsPlace;
    folders?: readonly string[];
    /** Its parts are pages of their own, with tabs between them. */
    tabs?: { page: string; base: string };
  }
}

function record(
  feature: NamedFeature,
  { path, name, title, component, bare, open, docs }: FeatureRoute,
): RouteRecordRaw {
  const parts = partsOfRoute(name);
  setParts(name, parts);
  const tabs = component || parts.length < 2 ? {} : { tabs: { page: name, base: path } };
  const meta = {
    title,
    folders: foldersOfFeature(feature),
    ...(bare ? { bare } : {}),
    ...(open ? { open } : {}),
    ...(docs ? { docs } : {}),
    ...tabs,
  };
  const base = { path, meta, component: component ?? RouterView };
  return (parts.length > 0 ? { ...base, children: partRecords(name, parts) } : { ...base, name }) as RouteRecordRaw;
}

function partRecords(page: string, parts: readonly OwnedPart[]): RouteRecordRaw[] {
  const [first] = parts;
  const own = parts.some(({ name }) => name === '');
  return [
    ...(own
      ? []
      : [{ path: '', redirect: (to: RouteLocation) => ({ name: routeOfPart(page, first!), params: to.params }) }]),
    ...parts.map((part) => ({
      path: part.name,
      name: routeOfPart(page, part),
      component: part.component as () => Promise<Component>,
      meta: { title: part.title, folders: foldersOfFeature(part.feature), ...(part.docs ? { docs: part.docs } : {}) },
    })),
  ];
}

const routeOfPart = (page: string, { name }: OwnedPart) => (name === '' ? page : `${page}-${name}`);
const foldersOfFeature = ({ name, uses = [] }: NamedFeature) => [name, ...uses];

for (const { places } of features) setPlaces(places ?? {});

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
  // A page with a link to one of its parts scrolls there itself, once it has its data.
  scrollBehavior: (to, from, saved) => saved ?? (to.path === from.path || to.hash !== '' ? false : { top: 0 }),
});

router.beforeEach(async (to) => {
  if (to.meta.open) return true;
  const session = useSession();
  if (session.me) return true;
  fetchAhead(to);
  if (await untilAnswered(() => session.refresh())) return true;
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
  const { initialized } = await untilAnswered(() => call(system.status, {}, { renewSession: false }));
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

// Nothing of the page is there: its files did not load, or what it needs first was refused.
router.onError((_error, to) => noteLoadFailure(to.fullPath));

router.afterEach(async (to, from, failure) => {
  if (failure) return;
  noteLoaded();
  if (to.matched[0] !== from.matched[0]) pageSubject.value = '';
  // Sign-in and set-up begin with a field, which takes the focus itself.
  if (from.matched.length === 0 || to.path === from.path || to.meta.bare) return;
  await nextTick();
  // Parts of one object keep the focus where it is: their links stay.
  if (to.matched[0] !== from.matched[0] || to.meta.tabs)
    document.querySelector<HTMLElement>('h1[tabindex]')?.focus({ preventScroll: true });
});
