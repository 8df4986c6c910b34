import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { send } from "../../api/client";
import type { CatalogEntry } from "../../api/types";
import { useRouter } from "../../shell/router";
import { Confirm } from "../../ui/dialog";
import { entryAddress } from "./address";

/** Asks whether a document is to be deleted: this version of it, or all. */
export function Delete({ entry, close }: { entry: CatalogEntry; close(): void }) {
  const client = useQueryClient();
  const { go } = useRouter();
  const [whole, setWhole] = useState(false);
  const run = async () => {
    await send("/api/catalog/delete", whole ? { path: entry.path } : { path: entry.path, version: entry.version });
    for (const queryKey of [["catalog"], ["document"], ["versions"]]) void client.invalidateQueries({ queryKey });
    go(whole ? "/catalog" : entryAddress(entry.path, { tab: "versions" }));
  };
  return (
    <Confirm title={`Delete ${entry.path}?`} action={whole ? "Delete all versions" : `Delete version ${entry.version}`} close={close} run={run}>
      <p>Deleted documents aren't listed and can't be started. Running executions continue. Restore it from its versions.</p>
      <label className="row">
        <input type="checkbox" checked={whole} onChange={(event) => setWhole(event.target.checked)} /> all versions, not only {entry.version}
      </label>
    </Confirm>
  );
}
