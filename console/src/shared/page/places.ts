// Where an object is shown: told by the feature that shows it, asked by whoever names one.
type Place = (id: string, part?: string) => string;

const places = new Map<string, Place>();

export function setPlaces(given: Readonly<Record<string, Place>>): void {
  for (const [type, place] of Object.entries(given)) places.set(type, place);
}

/** Address of an object's page, or of a part of it; null: objects of this type have none. */
export function placeOf(type: string, id: string, part?: string): string | null {
  return places.get(type)?.(id, part) ?? null;
}
