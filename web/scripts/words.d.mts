/** What scripts/words.mjs writes. */
export function words(): unknown;
