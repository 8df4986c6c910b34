// What a page takes, in milliseconds, told and held to a limit.

/** Says what was measured; more than the limit is a failure. */
export function held(what, found, limit) {
  console.log(`  ${what}: ${Math.round(found)} ms, of ${limit}`);
  if (!(found <= limit)) throw new Error(`${what} took ${Math.round(found)} ms, more than ${limit}`);
}

export function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

/** Makes every load note when something is first painted, as `window.shownAt`, counted from the beginning of the load. */
export async function noteFirst(page, selector) {
  await page.addInitScript((wanted) => {
    const look = () => {
      if (document.querySelector(wanted)) requestAnimationFrame(() => (window.shownAt = performance.now()));
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }, selector);
}

/** The time between frames while something is done: the 95th of a hundred, and the longest. */
export async function frames(page, act) {
  await page.evaluate(() => {
    window.gaps = [];
    let last = performance.now();
    const next = (now) => {
      window.gaps.push(now - last);
      last = now;
      if (window.gaps) window.frame = requestAnimationFrame(next);
    };
    window.frame = requestAnimationFrame(next);
  });
  await act();
  const gaps = await page.evaluate(() => (cancelAnimationFrame(window.frame), window.gaps));
  gaps.sort((a, b) => a - b);
  return { most: gaps.at(-1), usual: gaps[Math.floor(gaps.length * 0.95)], count: gaps.length };
}
