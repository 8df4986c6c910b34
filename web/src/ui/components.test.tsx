// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";

import { ApiError } from "../api/client";
import { RouterProvider, useSearch } from "../shell/router";
import { Failure, Guard } from "./failure";
import { Tabs } from "./tabs";

afterEach(cleanup);

const HOSTILE = "<img src=x onerror=alert(1)>";

describe("a failure", () => {
  it("says what went wrong, what to do, and tries again when asked to", () => {
    const retry = vi.fn();
    render(
      <RouterProvider>
        <Failure of="The list" error={new ApiError(503, "busy", HOSTILE)} retry={retry} />
      </RouterProvider>,
    );
    const alert = screen.getByRole("alert");
    expect(alert.textContent).toContain(HOSTILE);
    expect(alert.querySelector("img")).toBeNull();
    expect(alert.textContent).toContain("try again in a moment");
    fireEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(retry).toHaveBeenCalledOnce();
  });

  it("of who is not known leads to where to sign in, and back", () => {
    history.replaceState(null, "", "/executions?status=failed");
    render(
      <RouterProvider>
        <Failure of="The list" error={new ApiError(401, "not_authenticated", "a token is needed")} />
      </RouterProvider>,
    );
    expect(screen.getByRole("link").getAttribute("href")).toBe("/sign-in?back=%2Fexecutions%3Fstatus%3Dfailed");
  });

  it("of one part leaves the rest of the page", () => {
    const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
    let broken = true;
    const Part = () => {
      if (broken) throw new Error("no such thing");
      return <p>mended</p>;
    };
    render(
      <RouterProvider>
        <p>the rest</p>
        <Guard of="The part">
          <Part />
        </Guard>
      </RouterProvider>,
    );
    expect(screen.getByText("the rest")).toBeTruthy();
    expect(screen.getByRole("alert").textContent).toContain("no such thing");
    broken = false;
    fireEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(screen.getByText("mended")).toBeTruthy();
    said.mockRestore();
  });
});

it("tabs are moved through with the arrow keys, past those that are closed", () => {
  const choose = vi.fn();
  const tabs = [{ name: "a", title: "A" }, { name: "b", title: "B", disabled: true }, { name: "c", title: "C" }];
  render(
    <Tabs label="Things" tabs={tabs} chosen="a" choose={choose}>
      {(name) => <p>about {name}</p>}
    </Tabs>,
  );
  expect(screen.getByRole("tabpanel").textContent).toBe("about a");
  fireEvent.keyDown(screen.getByRole("tablist"), { key: "ArrowRight" });
  fireEvent.keyDown(screen.getByRole("tablist"), { key: "ArrowLeft" });
  expect(choose.mock.calls).toEqual([["c"], ["c"]]);
});

it("two changes of the address in a row are both kept", () => {
  history.replaceState(null, "", "/executions?a=1");
  const Part = () => {
    const [query, change] = useSearch();
    return (
      <button
        type="button"
        onClick={() => {
          change({ b: "2" });
          change({ c: "3" });
        }}
      >
        {query.toString()}
      </button>
    );
  };
  render(
    <RouterProvider>
      <Part />
    </RouterProvider>,
  );
  fireEvent.click(screen.getByRole("button"));
  expect(screen.getByRole("button").textContent).toBe("a=1&b=2&c=3");
});
