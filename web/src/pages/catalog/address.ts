/** The address of a document's page. */
export function entryAddress(path: string, params: Record<string, string> = {}): string {
  const query = new URLSearchParams(params).toString();
  const address = `/catalog/${path.split("/").map(encodeURIComponent).join("/")}`;
  return query === "" ? address : `${address}?${query}`;
}

/** The address at which a document is edited. */
export function editorAddress(path: string, version?: number): string {
  const query = new URLSearchParams({ path, ...(version === undefined ? {} : { version: String(version) }) });
  return `/editor?${query}`;
}
