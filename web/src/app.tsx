// The table of pages. Each is fetched when it is first gone to.

import { QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, type ComponentType } from "react";

import { queryClient } from "./api/queries";
import { onRefused, onSession } from "./api/session";
import { Layout } from "./shell/layout";
import { Link, matched, RouterProvider, useRouter } from "./shell/router";
import { Empty, Loading } from "./ui/empty";
import { Guard, signInFrom } from "./ui/failure";

type Page = ComponentType<{ params: Record<string, string> }>;

const Executions = lazy(() => import("./pages/executions/page"));
const Execution = lazy(() => import("./pages/execution/page"));
const Catalog = lazy(() => import("./pages/catalog/page"));
const CatalogEntry = lazy(() => import("./pages/catalog/entry"));
const Editor = lazy(() => import("./pages/editor/page"));
const Operations = lazy(() => import("./pages/operations/page"));
const SignIn = lazy(() => import("./pages/sign-in/page"));

const PAGES: [pattern: string, title: string, page: Page][] = [
  ["/", "Executions", Executions],
  ["/executions", "Executions", Executions],
  ["/executions/:id", "Execution", Execution],
  ["/catalog", "Catalog", Catalog],
  ["/catalog/*path", "Catalog", CatalogEntry],
  ["/editor", "Editor", Editor],
  ["/operations", "Operations", Operations],
  ["/operations/*part", "Operations", Operations],
  ["/sign-in", "Sign in", SignIn],
];

const client = queryClient();
// What one person may see another may not.
onSession(() => {
  client.removeQueries({ type: "inactive" });
  void client.resetQueries();
});

export function App() {
  return (
    <QueryClientProvider client={client}>
      <RouterProvider>
        <Layout>
          <Current />
        </Layout>
      </RouterProvider>
    </QueryClientProvider>
  );
}

function Current() {
  const { path, go } = useRouter();
  useEffect(
    () =>
      onRefused(() => {
        if (location.pathname !== "/sign-in") go(signInFrom(), { replace: true });
      }),
    [go],
  );
  const found = PAGES.map(([pattern, title, page]) => ({ params: matched(pattern, path), title, page, pattern })).find(
    (one) => one.params !== null,
  );
  const title = found?.title ?? "Not found";
  useEffect(() => {
    document.title = `${title} · NoETL`;
  }, [title]);
  if (!found?.params) {
    return (
      <Empty title="There is no such page">
        <p>
          Nothing is at <code>{path}</code>. <Link to="/executions">Go to the executions</Link>
        </p>
      </Empty>
    );
  }
  const { page: Page, params } = found;
  // Another execution is another page: nothing of the last one stays.
  const key = `${found.pattern} ${Object.values(params).join("/")}`;
  return (
    <Guard key={key} of="This page">
      <Suspense fallback={<Loading of="the page" />}>
        <Page params={params} />
      </Suspense>
    </Guard>
  );
}
