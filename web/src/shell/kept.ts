// One of a few choices that the browser keeps, and that every part of the page hears of.

import { useSyncExternalStore } from "react";

export interface Choice<T extends string> {
  /** What is chosen, or what holds while nothing is. */
  current(): T;
  choose(value: T): void;
  /** The same for a component, which is drawn again when it changes. */
  use(): T;
}

/** A choice by its name in the browser's storage. `otherwise` is the value until the user chooses; `watch` notifies of changes. */
export function choice<T extends string>(name: string, values: readonly T[], otherwise: () => T, watch?: (told: () => void) => () => void): Choice<T> {
  const listeners = new Set<() => void>();
  // Where nothing may be kept, a choice holds until the page is left.
  let held: T | null = null;
  const current = () => {
    try {
      const kept = localStorage.getItem(name);
      return values.find((value) => value === kept) ?? held ?? otherwise();
    } catch {
      return held ?? otherwise();
    }
  };
  const listen = (told: () => void) => {
    const unwatch = watch?.(told);
    listeners.add(told);
    return () => {
      unwatch?.();
      listeners.delete(told);
    };
  };
  return {
    current,
    choose: (value) => {
      held = value;
      try {
        localStorage.setItem(name, value);
      } catch {
        // Held all the same.
      }
      listeners.forEach((told) => told());
    },
    use: () => useSyncExternalStore(listen, current),
  };
}
