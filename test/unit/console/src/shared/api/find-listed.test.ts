// One of a list, found page by page.
import test from 'ava';
import { findListed } from '../../../../../../console/src/shared/api/find-listed.ts';

const ALL = Array.from({ length: 250 }, (_, index) => ({ id: `id-${index}` }));

for (const { id, pages } of [
  { id: 'id-0', pages: 1 },
  { id: 'id-249', pages: 3 },
  { id: 'none', pages: 3 },
]) {
  test(`${id} is looked for on ${pages} pages`, async (t) => {
    let read = 0;
    const found = await findListed(id, async ({ page, pageSize }) => {
      read++;
      return { items: ALL.slice((page - 1) * pageSize, page * pageSize), total: ALL.length };
    });
    t.is(found?.id, id === 'none' ? undefined : id);
    t.is(read, pages);
  });
}
