/** Where somebody was before they had to sign in. An address elsewhere would be somebody else's choice. */
export function within(back: string | null): string {
  return back !== null && /^\/(?![/\\])/.test(back) && !back.startsWith("/sign-in") ? back : "/executions";
}
