/** Address of the page that required the sign-in. An address on another origin could be chosen by an attacker. */
export function within(back: string | null): string {
  return back !== null && /^\/(?![/\\])/.test(back) && !back.startsWith("/sign-in") ? back : "/executions";
}
