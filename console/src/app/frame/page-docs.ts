import { router } from '../router.ts';

/** Address of the docs for the open page. */
export function pageDocs(): string {
  const { docs } = router.currentRoute.value.meta;
  return docs ? `/docs/${docs}` : '/docs';
}
